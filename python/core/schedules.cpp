#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "python/core/schedules.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"

namespace tessera::python {

void declare_schedules(nb::module_ &m) {
    nb::class_<Schedule>(m, "RawSchedule", "A schedule as a value: exactly its JSON document. tessera.Schedule is the one to use.")
        .def(nb::init<const std::string &>(), nb::arg("name"))
        .def_static(
            "parse", [](const std::string &text, const std::string &subject) { return Schedule::parse(text, subject); }, nb::arg("text"),
            nb::arg("subject"))
        .def_static(
            "read", [](const std::string &file) { return read_schedule(file); }, nb::arg("file"))
        .def_prop_ro("name", &Schedule::name)
        .def_prop_ro("parent_name", &Schedule::parent_name)
        .def("named", &Schedule::named, nb::arg("name"))
        .def(
            "extends", [](const Schedule &s, const Schedule &parent) { return s.extends(parent); }, nb::arg("parent"))
        .def(
            "extends", [](const Schedule &s, const std::string &parent) { return s.extends(parent); }, nb::arg("parent"))
        .def("for_algorithm", &Schedule::for_algorithm, nb::arg("name"), nb::arg("surface") = "")
        .def(
            "stage",
            [](const Schedule &s, const std::string &stage, const std::string &knobs) {
                return s.stage(stage, StageKnobs(nlohmann::json::parse(knobs)));
            },
            nb::arg("stage"), nb::arg("knobs"))
        .def(
            "variant",
            [](const Schedule &s, const std::vector<std::string> &when, const std::string &stage, const std::string &knobs) {
                return s.variant(when, stage, StageKnobs(nlohmann::json::parse(knobs)));
            },
            nb::arg("when"), nb::arg("stage"), nb::arg("knobs"))
        .def("remove", &Schedule::remove, nb::arg("stage"), nb::arg("knob"))
        .def("unset", &Schedule::unset, nb::arg("stage"), nb::arg("knob"))
        .def_prop_ro("text", &Schedule::text, "The canonical document.")
        .def_prop_ro("hash", &Schedule::hash)
        .def(
            "__eq__", [](const Schedule &a, const Schedule &b) { return a == b; }, nb::is_operator(),
            nb::sig("def __eq__(self, arg: object, /) -> bool"));

    nb::class_<Library>(m, "Library", "Finds schedules by name, in folders.")
        .def(nb::new_([](const std::vector<std::string> &folders) {
                 auto *library = new Library;
                 for (const std::string &folder : folders) library->add_folder(folder);
                 return library;
             }),
             nb::arg("folders"))
        .def("add", &Library::add, nb::arg("schedule"))
        .def("find", &Library::find, nb::arg("name"))
        .def("names", &Library::names)
        .def(
            "check", [](const Library &l, const Schedule &s) { resolve(s, l); }, nb::arg("schedule"),
            "Merges it with its ancestors, so that what is wrong is said now.")
        .def(
            "flatten", [](const Library &l, const Schedule &s) { return flatten(s, l); }, nb::arg("schedule"))
        .def(
            "explain", [](const Library &l, const Schedule &s) { return explain(s, l); }, nb::arg("schedule"))
        .def(
            "explain_json", [](const Library &l, const Schedule &s) { return explain_json(s, l).dump(); }, nb::arg("schedule"))
        .def(
            "diff", [](const Library &l, const Schedule &a, const Schedule &b) { return diff(a, b, l); }, nb::arg("a"), nb::arg("b"));
}

}  // namespace tessera::python
