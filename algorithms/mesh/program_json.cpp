#include "algorithms/mesh/program_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "algorithms/text/json.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

namespace {

template <typename E, size_t N>
E one_named(const JsonReader &reader, const char *what, const E (&all)[N]) {
    std::vector<std::string> names;
    for (const E e : all) {
        if (reader.text() == name_of(e)) return e;
        names.emplace_back(name_of(e));
    }
    reader.fail("json.value", std::string("there is no ") + what + " '" + reader.quotable() + "'; expected one of " + join(names) + ".");
}

json write_step(const MeshStep &step) {
    return std::visit(Overloaded{
                          [](const Algorithm &part) {
                              return json{{"part", to_json(part)}};
                          },
                          [](const Collective &c) {
                              json j = {{"kind", name_of(c.kind)}, {"axis", c.axis}, {"tensor", c.tensor}, {"result", c.result}};
                              if (folds(c)) j["monoid"] = name_of(c.monoid);
                              return json{{"collective", j}};
                          },
                      },
                      step);
}

MeshStep read_step(const JsonReader &r) {
    r.only({"part", "collective"});
    const auto part = r.find("part"), collective = r.find("collective");
    if (part && collective) r.fail("json.value", "a step is a part or a collective, got both; make two of them.");
    if (part) return part->located([&] { return algorithm_from_json(part->value()); });
    const JsonReader given = r.at("collective");
    given.only({"kind", "axis", "tensor", "result", "monoid"});
    Collective c;
    c.kind = one_named(given.at("kind"), "collective", collective_kinds);
    c.axis = given.at("axis").text(), c.tensor = given.at("tensor").text(), c.result = given.at("result").text();
    if (folds(c)) c.monoid = one_named(given.at("monoid"), "monoid", mesh_monoids);
    else if (const auto monoid = given.find("monoid"))
        monoid->fail("json.value", std::string(name_of(c.kind)) + " folds nothing; remove it.");
    return c;
}

AxisPlacement read_placement(const JsonReader &r) {
    r.only({"shard", "partial", "monoid"});
    const auto shard = r.find("shard"), partial = r.find("partial");
    if (shard && partial) r.fail("json.value", "a placement is shard or partial, got both; remove one.");
    AxisPlacement on;
    if (shard) {
        if (const auto monoid = r.find("monoid")) monoid->fail("json.value", "what is sharded has no monoid; remove it.");
        on.dim = shard->text();
        return on;
    }
    on.kind = PlacementKind::partial, on.dim = r.at("partial").text();
    on.monoid = one_named(r.at("monoid"), "monoid", mesh_monoids);
    return on;
}

// Two texts of a list, as [tensor, name].
std::pair<std::string, JsonReader> read_pair(const JsonReader &r, const char *what) {
    const std::vector<JsonReader> items = r.items();
    if (items.size() != 2) r.fail("json.value", std::string("expected ") + what + ", got " + std::to_string(items.size()) + " items.");
    return {items[0].text(), items[1]};
}

}  // namespace

json to_json(const MeshProgram &p) {
    json j = {{"format", mesh_program_format}, {"version", mesh_program_version}};
    j["mesh"] = json::array();
    for (const MeshAxis &axis : p.mesh.axes) j["mesh"].push_back(json::array({axis.name, axis.ranks}));
    Algorithm declares;
    declares.name = p.name, declares.dims = p.dims, declares.parameters = p.parameters;
    j["placements"] = json::object();
    for (const MeshTensor &t : p.tensors) {
        Tensor &tensor = declares.tensors.emplace_back();
        tensor.name = t.name, tensor.dtype = t.dtype, tensor.dims = t.dims, tensor.role = t.role.value_or(Role::input);
        for (const auto &[axis, on] : t.placement) {
            json &written = j["placements"][t.name][axis];
            if (on.kind == PlacementKind::shard) written = {{"shard", on.dim}};
            else written = {{"partial", on.dim}, {"monoid", name_of(on.monoid)}};
        }
    }
    j["declares"] = to_json(declares);
    j["steps"] = json::array(), j["outputs"] = json::array();
    for (const MeshStep &step : p.steps) j["steps"].push_back(write_step(step));
    for (const auto &[name, tensor] : p.outputs) j["outputs"].push_back(json::array({name, tensor}));
    return j;
}

MeshProgram mesh_program_from_json(const json &value) {
    const JsonReader r(value, "mesh program");
    const std::string got = r.at("format").text();
    if (got != mesh_program_format)
        r.at("format").fail("json.version",
                            std::string("expected the format \"") + mesh_program_format + "\", got \"" + r.at("format").quotable() + "\".");
    if (const int64_t v = r.at("version").integer(); v != mesh_program_version)
        r.at("version").fail("json.version", "this build reads version " + std::to_string(mesh_program_version) +
                                                 ", the text has version " + std::to_string(v) + "; write it again with this build.");
    r.only({"format", "version", "mesh", "declares", "placements", "steps", "outputs"});
    MeshProgram p;
    for (const JsonReader &axis : r.at("mesh").items()) {
        const auto [name, ranks] = read_pair(axis, "an axis and its ranks");
        p.mesh.axes.push_back({name, ranks.integer(1, max_mesh_chunks)});
    }
    const JsonReader declared = r.at("declares");
    const Algorithm declares = declared.located([&] { return algorithm_from_json(declared.value()); });
    p.name = declares.name, p.dims = declares.dims, p.parameters = declares.parameters;
    for (const Tensor &t : declares.tensors) p.tensors.push_back({t.name, t.dtype, t.dims, {}, t.role});
    for (const JsonReader &step : r.at("steps").items()) p.steps.push_back(read_step(step));
    // What a step makes is no input.
    const auto made = [&](const std::string &name) {
        for (MeshTensor &t : p.tensors)
            if (t.name == name) t.role.reset();
    };
    for (const MeshStep &step : p.steps)
        std::visit(Overloaded{
                       [&](const Algorithm &part) {
                           for (const std::string &output : part.outputs) made(output);
                       },
                       [&](const Collective &c) { made(c.result); },
                   },
                   step);
    for (const auto &[name, axes] : r.at("placements").fields()) {
        const auto t = std::find_if(p.tensors.begin(), p.tensors.end(), [&](const MeshTensor &one) { return one.name == name; });
        if (t == p.tensors.end()) axes.fail("json.value", "there is no tensor of that name in \"declares\".");
        for (const auto &[axis, on] : axes.fields()) t->placement[axis] = read_placement(on);
    }
    for (const JsonReader &output : r.at("outputs").items()) {
        const auto [name, tensor] = read_pair(output, "an output and its tensor");
        p.outputs.emplace_back(name, tensor.text());
    }
    return p;
}

}  // namespace tessera
