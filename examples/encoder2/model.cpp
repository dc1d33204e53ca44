#include "model.h"

#include <tessera/runtime/state/checkpoint.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "encoder2_functions.h"
#ifdef ENCODER2_MIXED
#include "encoder2_wide_functions.h"
#endif

static void check(TessStateStatus status, const TessStateError &error) {
    if (status != TESS_STATE_OK) throw std::runtime_error(error.text);
}

Model::Model(int32_t threads) {
    add_policy(encoder2_gradients_describe, encoder2_length_describe, encoder2_update_describe, threads);
#ifdef ENCODER2_MIXED
    add_policy(wide_gradients_describe, wide_length_describe, wide_update_describe, threads);
#endif
    const Kernel &gradients = policies_.front().gradients;
    const std::vector<int64_t> batch = gradients.argument("ids").extents;
    texts_ = batch.at(0), bytes_ = batch.at(1), width_ = gradients.argument("norm_head").extents.at(0);
    precision_.patience = 4, precision_.grow = 200, precision_.stay = 20;
    precision_.range = 0x1p63;  // of a length, whose square has to be a number of f32
}

void Model::add_policy(Describe gradients, Describe length, Describe update, int32_t threads) {
    Kernel made(gradients, {}, threads);
    std::vector<Part> parts;
    int64_t size = 0;
    uint64_t each = 0;
    for (const Kernel::Argument &a : made.arguments()) {
        if (a.name == "ids" || a.name == "targets" || a.name == "loss" || a.name == "scaled" || a.name.ends_with(".grad")) continue;
        if (a.type != number_type && a.type != TESS_BF16)
            throw std::runtime_error("the weights " + a.name + " are neither in bf16 nor of the type of their masters");
        parts.push_back({a.name, size, a.size()});
        size += a.size(), each = tess_dtype_size(a.type);
    }
    if (!policies_.empty() && size != size_) throw std::runtime_error("the functions of two policies have other weights");
    parts_ = parts, size_ = size;
    const std::map<std::string, int64_t> all = {{"N", size}};
    policies_.push_back({std::move(made), Kernel(length, all, threads), Kernel(update, all, threads), each, {}});
    policies_.back().g.resize(static_cast<size_t>(size) * each);
}

// The weights as the functions have them: as they are, or in bf16, to the nearest, ties to even.
std::vector<char> Model::stored(const std::vector<Number> &w, uint64_t each) const {
    std::vector<char> made(w.size() * each);
    if (each == sizeof(Number)) std::memcpy(made.data(), w.data(), made.size());
    for (size_t i = 0; each == 2 && i < w.size(); i++) {
        const auto single = static_cast<float>(w[i]);
        uint32_t bits = 0;
        std::memcpy(&bits, &single, sizeof bits);
        const auto high = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        std::memcpy(made.data() + i * each, &high, each);
    }
    return made;
}

// Each weight, or its gradient, where it lies in a vector of all.
std::map<std::string, void *> Model::data_of(std::vector<char> &all, uint64_t each, const std::string &suffix) const {
    std::map<std::string, void *> data;
    for (const Part &part : parts_) data[part.name + suffix] = all.data() + part.begin * static_cast<int64_t>(each);
    return data;
}

std::vector<int64_t> Model::sizes() const {
    const Kernel &gradients = policies_.front().gradients;
    std::vector<int64_t> sizes = {texts_, bytes_};
    for (const int64_t extent : gradients.argument("query").extents) sizes.push_back(extent);
    sizes.push_back(gradients.argument("up").extents.at(2));
    sizes.push_back(gradients.argument("head").extents.at(1));
    return sizes;
}

State Model::initial(uint64_t seed, uint64_t text, int32_t exponent) const {
    State state;
    state.seed = seed, state.text = text;
    TessPrecisionConfig config = precision_;
    config.first = is_mixed() ? exponent : 0, config.most = std::max(config.first, config.most);
    TessStateError error = {};
    check(tess_precision_start(&config, &state.precision, &error), error);
    const auto size = static_cast<size_t>(size_);
    state.m.resize(size), state.v.resize(size), state.w.assign(size, 1);
    const double width = std::sqrt(12 / static_cast<double>(width_));
    for (const Part &part : parts_) {
        if (part.name.starts_with("norm")) continue;
        for (int64_t i = part.begin; i < part.begin + part.size; i++) {
            const double evenly = static_cast<double>(mixed(mixed(seed) + static_cast<uint64_t>(i)) >> 40) * 0x1p-24;  // 0 ..< 1
            state.w[static_cast<size_t>(i)] = static_cast<Number>((evenly - 0.5) * width);
        }
    }
    return state;
}

Model::Step Model::advance(State &state, const std::vector<uint8_t> &text, const Recipe &recipe) {
    const auto step = static_cast<double>(state.losses.size() + 1), made = static_cast<double>(state.precision.updates + 1);
    const double scale = is_mixed() ? tess_precision_scale(&state.precision) : 1;
    Policy &policy = policies_.at(static_cast<size_t>(state.precision.is_wide));
    Batch batch = batch_of(text, texts_, bytes_, state.seed, state.losses.size() + 1);
    Number loss = 0, scaled = 0, length = 0;
    std::vector<char> w = stored(state.w, policy.each);
    std::map<std::string, void *> data = data_of(w, policy.each);
    data.merge(data_of(policy.g, policy.each, ".grad"));
    data["ids"] = batch.ids.data(), data["targets"] = batch.targets.data(), data["loss"] = &loss, data["scaled"] = &scaled;
    policy.gradients.run(data,
                         {{"seed", static_cast<double>(state.seed)}, {"step", step}, {"rate", recipe.dropout}, {"loss_scale", scale}});
    policy.length.run({{"g", policy.g.data()}, {"length", &length}});

    const double own_length = static_cast<double>(length) / scale;
    const bool is_narrow = is_mixed() && !state.precision.is_wide;
    if (!std::isfinite(loss) || (!std::isfinite(length) && !is_narrow))
        throw std::runtime_error("step " + std::to_string(state.losses.size() + 1) + ": the loss is " + std::to_string(loss) +
                                 " and the gradient " + std::to_string(own_length) +
                                 " long; go on from the checkpoint with a smaller --rate");
    state.losses.push_back(loss);
    if (!tess_precision_step(&precision_, &state.precision, own_length)) return {loss, own_length};
    const double rate = recipe.rate * std::min(1.0, step / recipe.warm_up);
    policy.update.run({{"m", state.m.data()}, {"v", state.v.data()}, {"w", state.w.data()}, {"g", policy.g.data()}},
                      {{"cut", std::min(recipe.longest / std::max(own_length, 1e-30), 1.0) / scale},
                       {"beta1", recipe.beta1},
                       {"beta2", recipe.beta2},
                       {"epsilon", recipe.epsilon},
                       {"scale", 1 / std::sqrt(1 - std::pow(recipe.beta2, made))},
                       {"step", rate / (1 - std::pow(recipe.beta1, made))},
                       {"decay", 1 - rate * recipe.decay}});
    return {loss, own_length};
}

Weights Model::inference(const State &state) const {
    const uint64_t each = policies_.front().each;
    const std::vector<char> all = stored(state.w, each);
    Weights made;
    for (const Part &part : parts_) {
        const auto begin = all.begin() + part.begin * static_cast<int64_t>(each);
        made[part.name] = {begin, begin + part.size * static_cast<int64_t>(each)};
    }
    return made;
}

// What a checkpoint has, over the state's memory. `counts` are those of weights and of steps.
static std::vector<TessNamedTensor> tensors_of(State &state, const int64_t (&counts)[2], int64_t *text) {
    static const int64_t one = 1, fields = TESS_PRECISION_FIELDS;
    return {{"w", tess_dense(state.w.data(), number_type, 1, &counts[0])},
            {"m", tess_dense(state.m.data(), number_type, 1, &counts[0])},
            {"v", tess_dense(state.v.data(), number_type, 1, &counts[0])},
            {"losses", tess_dense(state.losses.data(), number_type, 1, &counts[1])},
            {"precision", tess_dense(&state.precision, TESS_I64, 1, &fields)},
            {"text", tess_dense(text, TESS_I64, 1, &one)}};
}

void Model::save(const std::filesystem::path &file, State &state) const {
    const int64_t counts[2] = {size_, static_cast<int64_t>(state.losses.size())};
    auto text = static_cast<int64_t>(state.text);
    const std::vector<TessNamedTensor> tensors = tensors_of(state, counts, &text);
    const TessStateHead head = {"", counts[1], state.seed};
    TessStateError error = {};
    check(tess_state_save(file.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), &error), error);
}

State Model::load(const std::filesystem::path &file) const {
    TessStateHead head = {};
    TessStateError error = {};
    const auto nothing = [](void *, const TessStoredTensor *) -> int32_t { return 0; };
    check(tess_state_look(file.c_str(), &head, nothing, nullptr, &error), error);
    State state;
    for (std::vector<Number> *all : {&state.w, &state.m, &state.v}) all->resize(static_cast<size_t>(size_));
    state.losses.resize(static_cast<size_t>(head.step));
    const int64_t counts[2] = {size_, head.step};
    int64_t text = 0;
    const std::vector<TessNamedTensor> tensors = tensors_of(state, counts, &text);
    check(tess_state_load(file.c_str(), &head, tensors.data(), static_cast<int32_t>(tensors.size()), &error), error);
    state.seed = head.seed, state.text = static_cast<uint64_t>(text);
    return state;
}
