#include "model.h"

#include <tessera/runtime/state/checkpoint.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "encoder2_functions.h"

Model::Model(int32_t threads) : gradients_(encoder2_gradients_describe, {}, threads), update_(encoder2_update_describe, {}, threads) {
    for (const Kernel::Argument &a : gradients_.arguments()) {
        if (a.name == "ids" || a.name == "targets" || a.name == "loss" || a.name.ends_with(".grad")) continue;
        if (a.type != number_type && a.type != TESS_BF16)
            throw std::runtime_error("the weights " + a.name + " are neither in bf16 nor of the type of their masters");
        parts_.push_back({a.name, size_, a.size()});
        each_ = tess_dtype_size(a.type);
        size_ += a.size();
    }
    const std::vector<int64_t> batch = gradients_.argument("ids").extents;
    texts_ = batch.at(0), bytes_ = batch.at(1), width_ = gradients_.argument("norm_head").extents.at(0);
    update_ = Kernel(encoder2_update_describe, {{"N", size_}}, threads);
    g_.resize(static_cast<size_t>(size_) * each_);
}

// The weights as the functions have them: as they are, or in bf16, to the nearest, ties to even.
std::vector<char> Model::stored(const std::vector<Number> &w) const {
    std::vector<char> made(w.size() * each_);
    if (each_ == sizeof(Number)) std::memcpy(made.data(), w.data(), made.size());
    for (size_t i = 0; each_ == 2 && i < w.size(); i++) {
        const auto single = static_cast<float>(w[i]);
        uint32_t bits = 0;
        std::memcpy(&bits, &single, sizeof bits);
        const auto high = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        std::memcpy(made.data() + i * each_, &high, each_);
    }
    return made;
}

// Each weight, or its gradient, where it lies in a vector of all.
std::map<std::string, void *> Model::data_of(std::vector<char> &all, const std::string &suffix) const {
    std::map<std::string, void *> data;
    for (const Part &part : parts_) data[part.name + suffix] = all.data() + part.begin * static_cast<int64_t>(each_);
    return data;
}

State Model::initial(uint64_t seed, uint64_t text) const {
    State state;
    state.seed = seed, state.text = text;
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
    const auto step = static_cast<double>(state.losses.size() + 1);
    Batch batch = batch_of(text, texts_, bytes_, state.seed, state.losses.size() + 1);
    Number loss = 0, length = 0;
    std::vector<char> w = stored(state.w);
    std::map<std::string, void *> data = data_of(w);
    data.merge(data_of(g_, ".grad"));
    data["ids"] = batch.ids.data(), data["targets"] = batch.targets.data(), data["loss"] = &loss;
    gradients_.run(data, {{"seed", static_cast<double>(state.seed)}, {"step", step}, {"rate", recipe.dropout}});

    const double rate = recipe.rate * std::min(1.0, step / recipe.warm_up);
    update_.run({{"m", state.m.data()}, {"v", state.v.data()}, {"w", state.w.data()}, {"g", g_.data()}, {"length", &length}},
                {{"longest", recipe.longest},
                 {"beta1", recipe.beta1},
                 {"beta2", recipe.beta2},
                 {"epsilon", recipe.epsilon},
                 {"scale", 1 / std::sqrt(1 - std::pow(recipe.beta2, step))},
                 {"step", rate / (1 - std::pow(recipe.beta1, step))},
                 {"decay", 1 - rate * recipe.decay}});
    if (!std::isfinite(loss) || !std::isfinite(length))
        throw std::runtime_error("step " + std::to_string(state.losses.size() + 1) + ": the loss is " + std::to_string(loss) +
                                 " and the gradient " + std::to_string(length) + " long; go on from the checkpoint with a smaller --rate");
    state.losses.push_back(loss);
    return {loss, length};
}

Weights Model::inference(const State &state) const {
    const std::vector<char> all = stored(state.w);
    Weights made;
    for (const Part &part : parts_) {
        const auto begin = all.begin() + part.begin * static_cast<int64_t>(each_);
        made[part.name] = {begin, begin + part.size * static_cast<int64_t>(each_)};
    }
    return made;
}

static void check(TessStateStatus status, const TessStateError &error) {
    if (status != TESS_STATE_OK) throw std::runtime_error(error.text);
}

// What a checkpoint has, over the state's memory. `counts` are those of weights and of steps.
static std::vector<TessNamedTensor> tensors_of(State &state, const int64_t (&counts)[2], int64_t *text) {
    static const int64_t one = 1;
    return {{"w", tess_dense(state.w.data(), number_type, 1, &counts[0])},
            {"m", tess_dense(state.m.data(), number_type, 1, &counts[0])},
            {"v", tess_dense(state.v.data(), number_type, 1, &counts[0])},
            {"losses", tess_dense(state.losses.data(), number_type, 1, &counts[1])},
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
