#include "generators/registry/transforms.h"

#include "algorithms/library/library.h"
#include "generators/choose/tuning_record.h"
#include "generators/kernel/artifact_task.h"
#include "generators/registry/kernel_request.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_transforms {

using namespace tessera::test;

namespace {

std::string shown(std::vector<std::string> words) {
    words.insert(words.begin(), "show");
    words.emplace_back("--quiet");
    const Outcome outcome = generator(words, sample_registry_with_encoder());
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out;
}

}  // namespace

TEST_CASE("what is made of an algorithm is made in the order of the command line") {
    const std::string batched = shown({"matmul", "--vmap", "B=x", "--grad", "w"}), each = shown({"matmul", "--grad", "w", "--vmap", "B"});
    CHECK_THAT(batched, Catch::StartsWith("algorithm matmul.vmap.grad: f32") && Catch::Contains("w.grad[K, N]: f32 = dot over B, M of"));
    CHECK_THAT(each, Catch::StartsWith("algorithm matmul.grad.vmap: f32") && Catch::Contains("w.grad[B, K, N]: f32 = dot over M of"));
    CHECK(batched == shown({"matmul", "--transform", "vmap B x", "--transform", "grad w"}));
    CHECK(batched == shown({"matmul", "--vmap", "B=x", "--transform", "grad w"}));
    CHECK(shown({"matmul", "--vmap", "A=x", "--vmap", "B=x", "--tangent", "w"}) ==
          shown({"matmul", "--transform", "vmap A x", "--transform", "vmap B x", "--transform", "tangent w"}));
    CHECK_THAT(shown({"matmul", "--transform", "transpose x"}), Catch::StartsWith("algorithm matmul.transpose: f32"));
}

TEST_CASE("what rounds keep is said in words or in a file, and groups know the rounds that --shape fixes") {
    const std::vector<std::string> encoder = {"encoder", "--shape", "L=6", "D=24", "F=32"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), encoder.begin(), encoder.end());
        return shown(more);
    };
    const std::string again = with({"--grad", "x"});
    const std::string saved = with({"--grad", "x", "--residuals", "layers.qkv.*=recompute", "layers.*=save"});
    CHECK(again != saved);
    const TemporaryFolder folder;
    const std::string file = folder.path() / "residuals.json";
    write_file(file, R"([{"layers.qkv.*": "recompute"}, {"layers.*": "save"}])");
    CHECK(with({"--grad", "x", "--residuals", file}) == saved);
    CHECK(with({"--transform", "grad x layers.qkv.*=recompute layers.*=save"}) == saved);
    CHECK_THAT(with({"--checkpoint", "layers=4", "--grad", "x"}), Catch::StartsWith("algorithm encoder.grad") && Catch::Contains("= 2"));

    write_file(file, R"([{"layers.*": "keep"}])");
    check_refused({"show", "encoder", "--grad", "x", "--residuals", file},
                  {"error[json.value]", "/0/layers.*", "expected \"save\", \"recompute\"", "got \"keep\"."}, 2,
                  sample_registry_with_encoder());
    for (const char *rounds : {R"([{"layers": "0"}])", R"([{"layers": 0}])", R"([{"layers": "2"}])", R"([{"layers": [2]}])"}) {
        write_file(file, rounds);
        check_refused({"show", "encoder", "--grad", "x", "--residuals", file}, {"error[json.value]", "/0/layers", "a number of at least 1"},
                      2, sample_registry_with_encoder());
    }
    write_file(file, R"([{"a": "save", "b": "save"}])");
    check_refused({"show", "encoder", "--grad", "x", "--residuals", file}, {"error[json.value]", "/0", "one pattern", "got 2"}, 2,
                  sample_registry_with_encoder());
    check_refused({"show", "encoder", "--checkpoint", "layers=4"}, {"error[checkpoint.rounds]", "'L'"}, 2, sample_registry_with_encoder());
}

TEST_CASE("words that make nothing are refused with what is expected") {
    const auto refused = [](const std::vector<std::string> &words, const std::vector<std::string> &parts) {
        std::vector<std::string> all = {"show", "matmul"};
        all.insert(all.end(), words.begin(), words.end());
        check_refused(all, parts);
    };
    refused({"--transform", "gard x"},
            {"error[transform.unknown]", "'gard x'",
             "grad or value_and_grad or forward or backward or tangent or transpose or vmap or checkpoint", "'grad'?"});
    refused({"--transform", ""}, {"error[transform.unknown]", "such as 'grad x w'"});
    refused({"--transform", "vmap"}, {"error[transform.words]", "'vmap'", "vmap <dim> <name>..., such as vmap B x"});
    refused({"--transform", "tangent x=save"}, {"error[transform.words]", "names of inputs, states or parameters behind tangent"});
    refused({"--checkpoint", "layers"}, {"error[transform.words]", "checkpoint <call>=<rounds of a group>"});
    refused({"--checkpoint", "layers=0"}, {"error[transform.words]", "'checkpoint layers=0'"});
    refused({"--checkpoint", "layers=2"},
            {"error[checkpoint.unknown]", "'layers' is no call that repeats", "no call of it repeats. Leave the groups out."});
    for (const char *given : {"=x", "B=", "B=x,,w", "B=x,", "B=,x", "B=x=w", "B x", "", "B,C"})
        refused({"--vmap", given}, {"error[transform.words]", std::string("vmap '") + given + "'", "such as B or B=x,w"});
    refused({"--grad", "x", "--residuals", "ac=save"}, {"error[derivative.residuals]", "'ac'", "there are"});
    refused({"--grad", "x", "--residuals", "y=keep"}, {"error[transform.words]", "<stages>=save or <stages>=recompute"});
    refused({"--grad", "x", "--residuals", "/none.json"}, {"error[residuals.file]", "/none.json"});
    refused({"--residuals", "y=save"}, {"error[command.arguments]", "--residuals requires --grad"});
    refused({"--transform", "grad x", "--residuals", "y=save"},
            {"error[command.arguments]", "--residuals requires --grad", "got --transform 'grad x'", "'grad x layers.*=save'"});
    refused({"--vmap", "M"}, {"error[vmap.dim]", "'M'"});
}

TEST_CASE("a task has what was made of its algorithm, and makes it again") {
    KernelTask task;
    task.algorithm = "matmul.vmap.grad", task.numerics = "f32", task.target = "avx2", task.transforms = {"vmap B x", "grad w"};
    const KernelOptions options = options_of(task);
    CHECK(options.algorithm == "matmul");
    CHECK(options.transforms == task.transforms);
    CHECK(load_algorithm(sample_registry(), options).name == task.algorithm);
    const std::vector<std::string> words = tuning_words(task, {});
    CHECK(std::vector<std::string>(words.begin(), words.begin() + 2) == std::vector<std::string>{"tune", "matmul"});
    CHECK(join(words, " ").find("--transform vmap B x --transform grad w") != std::string::npos);
}

}  // namespace tessera::test_transforms
