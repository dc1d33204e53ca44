#include "inference.h"

#include <tessera/runtime/state/checkpoint.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "encoder2_functions.h"
#include "text.h"

static constexpr int32_t held_out_batches = 4;

// Memory for a function's argument.
static std::vector<char> room_for(const Kernel::Argument &a) {
    return std::vector<char>(static_cast<size_t>(a.size()) * tess_dtype_size(a.type));
}

Weights in_codes(const Weights &weights, int32_t threads) {
    Kernel codes(encoder2_codes_describe, {}, threads);
    Weights made = weights;
    std::map<std::string, void *> data;
    for (const Kernel::Argument &a : codes.arguments()) {
        const std::string of = a.name.substr(0, a.name.find('_'));  // up of up_codes and up_code_scales
        if (of == a.name) {
            data[a.name] = const_cast<char *>(weights.at(a.name).data());
            continue;
        }
        std::vector<char> &result = made[a.name.ends_with("_scales") ? of + "_scales" : of];
        result = room_for(a), data[a.name] = result.data();
    }
    codes.run(data);
    return made;
}

Inference::Inference(Weights weights, int32_t threads)
    : weights_(std::move(weights)),
      has_codes_(weights_.contains("up_scales")),
      threads_(threads),
      loss_(has_codes_ ? encoder2_loss_int8_describe : encoder2_loss_describe, {}, threads),
      logits_(encoder2_logits_describe, {}, threads) {
    for (const Kernel::Argument &a : loss_.arguments()) {
        if (a.name == "ids" || a.name == "targets" || a.name == "loss") continue;
        const auto found = weights_.find(a.name);
        if (found == weights_.end() || found->second.size() != room_for(a).size())
            throw std::runtime_error("the weights " + a.name + " are of another type or size than these functions were made for");
    }
}

// The functions only read what they take as inputs.
std::map<std::string, void *> Inference::data() const {
    std::map<std::string, void *> data;
    for (const auto &[name, bytes] : weights_) data[name] = const_cast<char *>(bytes.data());
    return data;
}

double Inference::loss(const std::vector<uint8_t> &text) {
    const std::vector<int64_t> size = loss_.argument("ids").extents;
    double sum = 0;
    for (int32_t i = 0; i < held_out_batches; i++) {
        Batch batch = batch_of(text, size.at(0), size.at(1), 0, static_cast<uint64_t>(i));
        Number loss = 0;
        std::map<std::string, void *> all = data();
        all["ids"] = batch.ids.data(), all["targets"] = batch.targets.data(), all["loss"] = &loss;
        loss_.run(all);
        sum += static_cast<double>(loss);
    }
    return sum / held_out_batches;
}

size_t Inference::begin_of(const std::vector<uint8_t> &text) const {
    const auto most = static_cast<size_t>(logits_.argument("ids").extents.at(1));
    const size_t half = std::max<size_t>(1, most / 2);
    return text.size() <= most ? 0 : (text.size() - most + half - 1) / half * half;
}

std::vector<Number> Inference::scores(const std::vector<uint8_t> &text) {
    const std::vector<uint8_t> counts(text.begin() + static_cast<std::ptrdiff_t>(begin_of(text)), text.end());
    const bool goes_on = kept_.size() < counts.size() && std::equal(kept_.begin(), kept_.end(), counts.begin());
    if (!goes_on) kept_.clear();
    auto length = static_cast<int32_t>(kept_.size());
    std::vector<int32_t> ids(counts.begin() + length, counts.end());
    if (const auto rows = static_cast<int64_t>(ids.size()); rows != rows_) {
        next_ = std::make_unique<Kernel>(has_codes_ ? encoder2_next_int8_describe : encoder2_next_describe,
                                         std::map<std::string, int64_t>{{"S", rows}}, threads_);
        rows_ = rows;
    }
    if (keys_.empty()) keys_ = room_for(next_->argument("cache_keys")), values_ = room_for(next_->argument("cache_values"));
    std::vector<Number> logits(static_cast<size_t>(next_->argument("logits").size()));
    std::map<std::string, void *> all = data();
    all["ids"] = ids.data(), all["cache_length"] = &length, all["cache_keys"] = keys_.data(), all["cache_values"] = values_.data();
    all["logits"] = logits.data();
    next_->run(all);
    kept_ = counts;
    return logits;
}

std::vector<Number> Inference::scores_at_once(const std::vector<uint8_t> &text) {
    if (has_codes_) throw std::runtime_error("codes of i8 write with a cache; leave out --no-cache");
    const size_t begin = begin_of(text), last = text.size() - begin;
    std::vector<int32_t> ids(static_cast<size_t>(logits_.argument("ids").size()));  // what stands behind is not looked at
    std::copy(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), ids.begin());
    const auto each = static_cast<size_t>(logits_.argument("logits").extents.at(2));
    std::vector<Number> logits(ids.size() * each);
    std::map<std::string, void *> all = data();
    all["ids"] = ids.data(), all["logits"] = logits.data();
    logits_.run(all);
    const auto at = logits.begin() + static_cast<std::ptrdiff_t>((last - 1) * each);
    return {at, at + static_cast<std::ptrdiff_t>(each)};
}

size_t Inference::bytes_of_weights() const {
    size_t sum = 0;
    for (const auto &[name, bytes] : weights_) sum += bytes.size();
    return sum;
}

static void check(TessStateStatus status, const TessStateError &error) {
    if (status != TESS_STATE_OK) throw std::runtime_error(error.text);
}

void Inference::save(const std::filesystem::path &file) const {
    std::vector<TessNamedTensor> tensors;
    const std::map<std::string, void *> all = data();
    for (const Kernel::Argument &a : loss_.arguments())
        if (const auto found = all.find(a.name); found != all.end())
            tensors.push_back(
                {a.name.c_str(), tess_dense(found->second, a.type, static_cast<int32_t>(a.extents.size()), a.extents.data())});
    const TessStateHead head = {};
    TessStateError error = {};
    check(tess_state_save(file.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), &error), error);
}

Weights Inference::load(const std::filesystem::path &file) {
    std::vector<std::pair<std::string, TessStoredTensor>> stored;
    const auto add = [](void *all, const TessStoredTensor *tensor) -> int32_t {
        static_cast<decltype(stored) *>(all)->emplace_back(tensor->name, *tensor);
        return 0;
    };
    TessStateHead head = {};
    TessStateError error = {};
    check(tess_state_look(file.c_str(), &head, add, &stored, &error), error);
    Weights made;
    std::vector<TessNamedTensor> tensors;
    for (auto &[name, tensor] : stored) {
        const auto type = static_cast<TessDType>(tensor.dtype);
        size_t size = tess_dtype_size(type);
        for (int32_t i = 0; i < tensor.rank; i++) size *= static_cast<size_t>(tensor.extents[i]);
        made[name].resize(size);
        tensors.push_back({name.c_str(), tess_dense(made[name].data(), type, tensor.rank, tensor.extents)});
    }
    check(tess_state_load(file.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), &error), error);
    return made;
}
