#include "embedder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <stdexcept>

#include "operands.h"

// What the model was trained with, in tokens; longer texts are cut.
static constexpr size_t max_tokens = 256;
// Sentences that are run at one time, where there are many.
static constexpr size_t batch_size = 32;

static std::unique_ptr<char, decltype(&std::free)> memory_of(uint64_t bytes) {
    const uint64_t whole = std::max<uint64_t>(64, (bytes + 63) / 64 * 64);
    auto memory = std::unique_ptr<char, decltype(&std::free)>(static_cast<char *>(std::aligned_alloc(64, whole)), &std::free);
    if (!memory) throw std::bad_alloc();
    return memory;
}

Batch batch_of(const std::vector<std::vector<int32_t>> &sentences) {
    Batch batch;
    batch.sentences = static_cast<int64_t>(sentences.size());
    for (const auto &tokens : sentences) batch.tokens = std::max(batch.tokens, static_cast<int64_t>(tokens.size()));
    batch.ids.resize(static_cast<size_t>(batch.sentences * batch.tokens));
    batch.keep.resize(batch.ids.size());
    for (size_t i = 0; i < sentences.size(); i++) {
        std::copy(sentences[i].begin(), sentences[i].end(), batch.ids.begin() + static_cast<int64_t>(i) * batch.tokens);
        std::fill_n(batch.keep.begin() + static_cast<int64_t>(i) * batch.tokens, sentences[i].size(), uint8_t(1));
    }
    return batch;
}

Embedder::Embedder(const Program &program, const std::string &folder, int32_t threads) : tokenizer_(folder + "/vocab.txt") {
    const tessera::Safetensors weights(std::filesystem::path(folder + "/model.safetensors"));
    check(program.describe(&kernel_), {});
    TessKernelInfo about = {};
    about.size = sizeof about;
    check(tess_kernel_info(&kernel_, &about), {});
    if (threads > 1) pool_.reset(tess_pool_create(threads));
    context_.threads = threads, context_.pool = pool_.get(), context_.fault = &fault_;

    int64_t layers = 0;
    std::vector<TessTensorInfo> tensors(static_cast<size_t>(about.tensors));
    for (int32_t i = 0; i < about.dims; i++) {
        TessDimInfo dim = {};
        dim.size = sizeof dim;
        check(tess_kernel_dim(&kernel_, i, &dim), {});
        if (std::string_view(dim.name) == "L") layers = dim.fixed;
        if (std::string_view(dim.name) == "D") width_ = dim.fixed;
    }
    for (int32_t i = 0; i < about.tensors; i++) {
        TessTensorInfo &tensor = tensors[static_cast<size_t>(i)];
        tensor.size = sizeof tensor;
        check(tess_kernel_tensor(&kernel_, i, &tensor), {});
        names_.push_back(tensor.name);
    }
    arguments_.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); i++) {
        if (names_[i] == "ids" || names_[i] == "keep" || names_[i] == "y") continue;
        const std::string name = names_[i].substr(0, names_[i].find('.'));  // "w_up.packed" is w_up
        const auto type = static_cast<TessDType>(tensors[i].type.code | tensors[i].type.bits << 8);
        Operand weight = operand(weights, name, type, layers);
        Argument &made = arguments_[i];
        made.extents = std::move(weight.extents);
        made.data = memory_of(weight.bytes.size());
        std::memcpy(made.data.get(), weight.bytes.data(), weight.bytes.size());
        made.tensor = tess_dense(made.data.get(), type, static_cast<int32_t>(made.extents.size()), made.extents.data());
        if (tensors[i].flags & TESS_FLAG_PACKED) pack(program, name, made);
    }
}

// In the place of the operand: the same in the layout that the function reads.
void Embedder::pack(const Program &program, const std::string &name, Argument &argument) {
    const auto packing = std::find_if(program.packings.begin(), program.packings.end(), [&](const auto &p) { return p.operand == name; });
    if (packing == program.packings.end()) throw std::runtime_error(program.name + " packs " + name + ", but not for this program");
    check(packing->size(&argument.tensor, &context_, &argument.packed_bytes), {name});
    auto packed = memory_of(argument.packed_bytes);
    const TessTensor tensor = tess_packed(packed.get(), &argument.packed_bytes);
    check(packing->pack(&argument.tensor, &tensor, &context_), {name, name + ".packed"});
    argument.data = std::move(packed), argument.tensor = tensor;
}

std::vector<float> Embedder::run(const Batch &batch) {
    std::vector<float> made(static_cast<size_t>(batch.sentences * width_));
    const int64_t in[] = {batch.sentences, batch.tokens}, out[] = {batch.sentences, width_};
    const TessTensor ids = tess_dense(const_cast<int32_t *>(batch.ids.data()), TESS_I32, 2, in);
    const TessTensor keep = tess_dense(const_cast<uint8_t *>(batch.keep.data()), TESS_BOOL, 2, in);
    const TessTensor y = tess_dense(made.data(), TESS_F32, 2, out);
    std::vector<const TessTensor *> tensors;
    for (size_t i = 0; i < names_.size(); i++)
        tensors.push_back(names_[i] == "ids" ? &ids : names_[i] == "keep" ? &keep : names_[i] == "y" ? &y : &arguments_[i].tensor);

    uint64_t bytes = 0;
    check(tess_call_workspace(&kernel_, tensors.data(), &context_, &bytes), names_);
    if (bytes > context_.workspace_bytes) {
        workspace_ = memory_of(bytes);
        context_.workspace = workspace_.get(), context_.workspace_bytes = bytes;
    }
    check(tess_call(&kernel_, tensors.data(), nullptr, &context_), names_);
    return made;
}

std::vector<float> Embedder::embed(const std::vector<std::string> &sentences) {
    std::vector<std::vector<int32_t>> tokens;
    for (const std::string &sentence : sentences) tokens.push_back(tokenizer_.encode(sentence, max_tokens));
    std::vector<size_t> order(sentences.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tokens[a].size() < tokens[b].size(); });

    const size_t width = static_cast<size_t>(width_);
    std::vector<float> all(sentences.size() * width);
    for (size_t first = 0; first < order.size(); first += batch_size) {
        const size_t last = std::min(first + batch_size, order.size());
        std::vector<std::vector<int32_t>> some;
        for (size_t i = first; i < last; i++) some.push_back(tokens[order[i]]);
        const std::vector<float> made = run(batch_of(some));
        for (size_t i = first; i < last; i++) std::copy_n(made.begin() + (i - first) * width, width, all.begin() + order[i] * width);
    }
    return all;
}

void Embedder::check(int32_t status, const std::vector<std::string> &names) const {
    if (status == TESS_OK) return;
    std::vector<const char *> pointers;
    for (const std::string &name : names) pointers.push_back(name.c_str());
    pointers.push_back(nullptr);
    char message[256];
    tess_status_message(status, &fault_, pointers.data(), message, sizeof message);
    throw std::runtime_error(std::string("a generated function failed: ") + message);
}
