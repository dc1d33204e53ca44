#include "compiler/mesh/program_table.h"

#include <algorithm>
#include <cstring>

#include "compiler/emit/spec.h"
#include "runtime/mesh/program.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr uint64_t line_bytes = 64;  // to which buffers in the arena are aligned

TessCollectiveKind kind_of(CollectiveKind kind) {
    switch (kind) {
    case CollectiveKind::all_reduce: return TESS_ALL_REDUCE;
    case CollectiveKind::reduce_scatter: return TESS_REDUCE_SCATTER;
    case CollectiveKind::all_gather: return TESS_ALL_GATHER;
    case CollectiveKind::all_to_all: return TESS_ALL_TO_ALL;
    }
    throw InternalError("a collective that no mesh has");
}

TessMonoid monoid_of(MeshMonoid monoid) {
    switch (monoid) {
    case MeshMonoid::sum: return TESS_SUM;
    case MeshMonoid::max: return TESS_MAX;
    case MeshMonoid::min: return TESS_MIN;
    case MeshMonoid::product: return TESS_PRODUCT;
    }
    throw InternalError("a monoid that no mesh has");
}

class TableMaker {
public:
    explicit TableMaker(const MeshProgram &program) : p_(program) {}

    ProgramTable run() {
        for (const MeshTensor &t : p_.tensors)
            if (t.role) add_buffer(t, *t.role == Role::state ? TESS_PROGRAM_STATE : TESS_PROGRAM_INPUT, t.name);
        for (const auto &[name, tensor] : p_.outputs) {
            if (buffer_of_.count(tensor))
                throw UserError("mesh.table",
                                p_.name + ": the outputs '" + name + "' and another are one tensor; make a stage of one of them.");
            add_buffer(p_.tensor(tensor), TESS_PROGRAM_OUTPUT, name);
        }
        find_last_uses();
        for (at_ = 0; at_ < p_.steps.size(); at_++) {
            std::visit(Overloaded{[&](const Algorithm &part) { add(part); }, [&](const Collective &c) { add(c); }}, p_.steps[at_]);
            free_what_nobody_reads();
        }
        for (const auto &[tensor, operation] : std::map(in_flight_)) wait(tensor);
        return finished();
    }

private:
    std::vector<int64_t> extents_of(const MeshTensor &t) const {
        std::vector<int64_t> extents;
        for (const std::string &name : t.dims) {
            const Dim *d = p_.find_dim(name);
            Expr size = d->size;
            if (size.defined())
                size = replace_extents(size, [&](const Expr &e) {
                    const Dim *other = p_.find_dim(e->name);
                    return other && other->kind == DimKind::fixed ? Expr(other->value) : Expr();
                });
            if (d->kind == DimKind::symbolic || (size.defined() && !size.is_constant()))
                throw UserError("mesh.extent", p_.name + "." + t.name + ": its dim '" + name +
                                                   "' has no fixed extent, as tensors in a table have; bind it first (bind_extents).");
            extents.push_back(size.defined() ? size->value.integer : d->value);
        }
        return extents;
    }

    // The tensor's place in the table, where it has memory.
    void add_buffer(const MeshTensor &t, TessProgramMemory memory, const std::string &name, uint64_t at = 0) {
        const std::vector<int64_t> extents = extents_of(t);
        if (is_in_half_bytes(t.dtype) || extents.size() > TESS_MAX_RANK)
            throw UserError("mesh.table", p_.name + "." + t.name + ": expected whole bytes and at most " + std::to_string(TESS_MAX_RANK) +
                                              " dims, got " + name_of(t.dtype) + "[" + join(t.dims) + "].");
        TessProgramTensor tensor = {};
        tensor.buffer = static_cast<int32_t>(buffers_.size()), tensor.dtype = abi_dtype(t.dtype);
        tensor.rank = static_cast<int32_t>(extents.size());
        std::copy(extents.begin(), extents.end(), tensor.extents);
        buffer_of_[t.name] = tensor.buffer;
        buffers_.push_back({bytes_of(t), at, memory, 0});
        tensors_.push_back(tensor);
        if (memory != TESS_PROGRAM_LOCAL) table_.buffers.push_back({name, buffers_.back().bytes});
    }

    uint64_t bytes_of(const MeshTensor &t) const {
        auto bytes = static_cast<uint64_t>(size_of(t.dtype));
        for (const int64_t extent : extents_of(t)) bytes *= static_cast<uint64_t>(extent);
        return bytes;
    }

    // The first room in the arena that is free.
    void place(const std::string &name) {
        if (buffer_of_.count(name)) return;
        const MeshTensor &t = p_.tensor(name);
        const uint64_t bytes = (std::max<uint64_t>(bytes_of(t), 1) + line_bytes - 1) / line_bytes * line_bytes;
        uint64_t at = 0;
        auto next = used_.begin();
        for (; next != used_.end() && next->first < at + bytes; ++next) at = std::max(at, next->second);
        used_[at] = at + bytes;
        table_.arena_bytes = std::max(table_.arena_bytes, at + bytes);
        add_buffer(t, TESS_PROGRAM_LOCAL, name, at);
        table_.local_buffers++;
    }

    void find_last_uses() {
        for (size_t i = 0; i < p_.steps.size(); i++)
            std::visit(Overloaded{
                           [&](const Algorithm &part) {
                               for (const Tensor &t : part.tensors) last_use_[t.name] = i;
                               for (const std::string &output : part.outputs) last_use_[output] = i;
                           },
                           [&](const Collective &c) { last_use_[c.tensor] = last_use_[c.result] = i; },
                       },
                       p_.steps[i]);
    }

    void wait(const std::string &tensor) {
        const auto it = in_flight_.find(tensor);
        if (it == in_flight_.end()) return;
        const int32_t started = it->second;
        operations_.push_back({TESS_PROGRAM_WAIT, started, 0, 0});
        std::erase_if(in_flight_, [&](const auto &flight) { return flight.second == started; });
    }

    void argue(const std::string &tensor, int32_t role) { arguments_.push_back({static_cast<int32_t>(buffer_of_.at(tensor)), role}); }

    void add(const Algorithm &part) {
        // What is only sent may be read meanwhile; what arrives, and states that are sent, may not be touched.
        for (const Tensor &t : part.tensors)
            if (arrives_.count(t.name) || t.role == Role::state) wait(t.name);
        const auto first = static_cast<int32_t>(arguments_.size());
        for (const Tensor &t : part.tensors)
            if (t.role != Role::constant) argue(t.name, t.role == Role::state ? TESS_ROLE_INOUT : TESS_ROLE_INPUT);
        for (const std::string &output : part.outputs) place(output), argue(output, TESS_ROLE_OUTPUT);
        operations_.push_back(
            {TESS_PROGRAM_RUN, static_cast<int32_t>(table_.kernels.size()), first, static_cast<int32_t>(arguments_.size()) - first});
        table_.kernels.push_back(&part);
    }

    void add(const Collective &c) {
        wait(c.tensor);
        place(c.result);
        const MeshTensor &given = p_.tensor(c.tensor), &result = p_.tensor(c.result);
        const std::vector<int64_t> extents = extents_of(given);
        TessProgramCollective made = {};
        made.kind = kind_of(c.kind), made.dtype = abi_dtype(given.dtype);
        for (size_t i = 0; i < p_.mesh.axes.size(); i++)
            if (p_.mesh.axes[i].name == c.axis) made.axis = static_cast<int32_t>(i);
        if (folds(c)) {
            made.monoid = monoid_of(c.monoid);
            made.chunks = static_cast<int32_t>(extents[0] * p_.mesh.ranks_on(c.axis));
        }
        made.id = static_cast<uint32_t>(collectives_.size()) + 1;
        uint64_t bytes = bytes_of(folds(c) ? result : given);
        if (c.kind == CollectiveKind::all_to_all) bytes /= static_cast<uint64_t>(p_.mesh.ranks_on(c.axis));  // for each rank
        made.count = static_cast<int64_t>(bytes / static_cast<uint64_t>(size_of(given.dtype)));
        const auto first = static_cast<int32_t>(arguments_.size());
        argue(c.tensor, TESS_ROLE_INPUT), argue(c.result, TESS_ROLE_OUTPUT);
        const auto started = static_cast<int32_t>(operations_.size());
        operations_.push_back({TESS_PROGRAM_START, static_cast<int32_t>(collectives_.size()), first, 2});
        collectives_.push_back(made);
        in_flight_[c.tensor] = in_flight_[c.result] = started;
        arrives_.insert(c.result);
    }

    void free_what_nobody_reads() {
        for (const auto &[tensor, buffer] : std::map(buffer_of_)) {
            const TessProgramBuffer &b = buffers_[static_cast<size_t>(buffer)];
            const auto used = last_use_.find(tensor);
            // What is in flight is freed when somebody had to wait for it.
            if (b.memory != TESS_PROGRAM_LOCAL || (used != last_use_.end() && used->second > at_) || in_flight_.count(tensor)) continue;
            if (!freed_.insert(tensor).second) continue;
            operations_.push_back({TESS_PROGRAM_FREE, buffer, 0, 0});
            used_.erase(b.at);
        }
    }

    ProgramTable finished() {
        TessProgramHeader header = {};
        std::memcpy(header.magic, "TESSPROG", sizeof header.magic);
        header.version = TESS_PROGRAM_TABLE, header.header = sizeof header, header.rank = -1;
        header.arena_bytes = table_.arena_bytes, header.kernels = static_cast<int32_t>(table_.kernels.size());
        header.axes = static_cast<int32_t>(p_.mesh.axes.size());
        for (size_t i = 0; i < p_.mesh.axes.size(); i++) header.extents[i] = static_cast<int32_t>(p_.mesh.axes[i].ranks);
        const std::string hash = hash_of(p_);
        header.hash = std::stoull(hash.substr(hash.find(':') + 1, 16), nullptr, 16);
        std::vector<uint64_t> &words = table_.words;
        words.resize((sizeof header + 7) / 8);
        const auto list = [&](const auto &entries) {
            const size_t at = words.size(), bytes = entries.size() * sizeof entries[0];
            words.resize(at + (bytes + 7) / 8);
            if (bytes > 0) std::memcpy(&words[at], entries.data(), bytes);
            return TessProgramList{at * 8, static_cast<int32_t>(entries.size()), 0};
        };
        header.buffers = list(buffers_), header.tensors = list(tensors_), header.arguments = list(arguments_);
        header.collectives = list(collectives_), header.operations = list(operations_);
        header.bytes = words.size() * 8;
        std::memcpy(words.data(), &header, sizeof header);
        return std::move(table_);
    }

    const MeshProgram &p_;
    ProgramTable table_;
    size_t at_ = 0;
    std::vector<TessProgramBuffer> buffers_;
    std::vector<TessProgramTensor> tensors_;  // as many: tensor i is all of buffer i
    std::vector<TessProgramArgument> arguments_;
    std::vector<TessProgramCollective> collectives_;
    std::vector<TessProgramOperation> operations_;
    std::map<std::string, int32_t> buffer_of_;
    std::map<std::string, size_t> last_use_;    // the step
    std::map<std::string, int32_t> in_flight_;  // what a collective takes or gives, and the operation that started it
    std::set<std::string> arrives_, freed_;
    std::map<uint64_t, uint64_t> used_;  // of the arena: where something begins and ends
};

}  // namespace

ProgramTable program_table(const MeshProgram &program) { return TableMaker(program).run(); }

}  // namespace tessera
