#include "compiler/interpret/lockstep.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "compiler/interpret/interpret.h"
#include "compiler/tile/chunks.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int64_t warp_threads = 32, banks = 32, bank_bytes = 4, sector_bytes = 32;
constexpr int32_t everyone = -1;    // all threads of a block at once
constexpr int32_t first_warp = -2;  // the warp w, whose threads do something together, is first_warp - w

struct Enough {};  // hazards

struct Touch {
    uint64_t epoch = 0;  // 0: never; epochs are those of one block
    uint32_t block = 0;  // counted over all launches, from 1
    int32_t thread = 0;
    int site = -1;
    int64_t group = -1;  // of asynchronous copies of the block
};

// Who touched an element. Two readers tell whether there was another one than the thread that stores; and a block that reads where others
// have read before it is the first of its launch or not.
struct Cell {
    Touch write, read, earlier_read, first_read;
};

struct Region {
    const std::byte *begin = nullptr;
    int64_t element_bytes = 1;
    TensorView view;
    Space space = Space::argument;
    bool is_own = false;  // of one thread
    const Buffer *buffer = nullptr;
    uint32_t block = 0;
    std::vector<Cell> cells = {};

    bool has(const std::byte *p) const { return begin <= p && p < begin + static_cast<int64_t>(cells.size()) * element_bytes; }
};

class Lockstep final : public TeamObserver {
public:
    explicit Lockstep(const LockstepOptions &options) : options_(options) {}

    LockstepReport report;

    void add_argument(const std::string &name, const TensorView &view) {
        int64_t first = 0, last = 0;
        for (size_t i = 0; i < view.extents.size(); i++) {
            if (view.extents[i] == 0) return;
            (view.strides[i] < 0 ? first : last) += (view.extents[i] - 1) * view.strides[i];
        }
        TensorView named = view;
        named.name = name;
        Region region{view.data + first * size_of(view.dtype), size_of(view.dtype), named};
        region.cells.resize(static_cast<size_t>(last - first + 1));
        add_region(std::move(region));
    }

    int site(const std::string &text) override {
        sites_.push_back(text);
        return static_cast<int>(sites_.size()) - 1;
    }

    void enters(const Loop &loop, int64_t) override {
        if (loop.kind == LoopKind::block) {
            begin_launch(loop);
        } else if (traits_of(loop.kind).threads > 0) {
            warp_ = -1;
            in_thread_loop_ = true;
            arrivals_.clear();
        }
        if (thread_ >= 0) path_.push_back(path_.back());
    }

    void iterates(const Loop &loop, int64_t iteration) override {
        if (loop.kind == LoopKind::block) {
            end_block();
            block_++, epoch_++, iteration_ = iteration, kernel().blocks++;
        } else if (loop.kind == LoopKind::thread) {
            thread_ = static_cast<int32_t>(iteration);
            path_.assign(1, 0);
            if (warp_ != thread_ / warp_threads) count_warp();
            warp_ = thread_ / warp_threads;
        } else if (loop.kind == LoopKind::warp) {
            thread_ = first_warp - static_cast<int32_t>(iteration);
        } else if (thread_ >= 0) {
            path_.back() = (path_[path_.size() - 2] * 1000003 + static_cast<uint64_t>(iteration) + 1) * 0x9e3779b97f4a7c15ULL;
        }
    }

    void leaves(const Loop &loop) override {
        if (loop.kind == LoopKind::block) {
            end_block();
            kernel_ = -1;
            return;
        }
        if (traits_of(loop.kind).threads > 0) {
            count_warp();
            check_arrivals(loop);
            thread_ = everyone;
            in_thread_loop_ = false;
            path_.clear();
        } else if (thread_ >= 0) {
            path_.pop_back();
        }
    }

    void waits(const Barrier &barrier) override {
        if (kernel_ < 0) return;
        if (in_thread_loop_) {
            arrivals_[&barrier].insert(thread_);
            return;
        }
        epoch_++;
        kernel().barriers++;
    }

    void copies_ahead(bool begins) override { copies_ahead_ = begins; }

    void commits() override {
        if (kernel_ < 0) return;
        groups_.push_back({0, open_bytes_});
        open_bytes_ = 0;
    }

    void awaits(const Await &await) override {
        if (kernel_ < 0) return;
        const size_t issued = groups_.size() - arrived_, pending = static_cast<size_t>(await.pending);
        int64_t bytes = 0;
        for (size_t i = arrived_; i < groups_.size(); i++) bytes += groups_[i].bytes;
        kernel().awaits++;
        kernel().bytes_in_flight = std::max(kernel().bytes_in_flight, bytes);
        if (issued <= pending)
            return add_hazard(fmt::format("kernel {}, block {}: an await of all but {} groups waits for nothing: {} were issued",
                                          kernel().kernel, iteration_, pending, issued));
        for (; arrived_ + pending < groups_.size(); arrived_++) groups_[arrived_].arrived = epoch_;
    }

    void begins(const Move &) override { is_moving_ = true, moved_.clear(); }
    void ends(const Move &move) override {
        is_moving_ = false;
        if (options_.counts && kernel_ >= 0 && !moved_.empty()) count(move);
    }

    void allocated(const Buffer &buffer, const TensorView &view) override {
        Region region{view.data, size_of(view.dtype), view, buffer.space, in_thread_loop_, &buffer, block_};
        // What threads share is there as long as the kernel runs, wherever in a block it begins to be used again.
        if (kernel_ >= 0 && !in_thread_loop_ && !traits_of(buffer.space).of_thread)
            for (auto &[end, earlier] : regions_)
                if (earlier.buffer == &buffer && earlier.block == block_) region.cells = std::move(earlier.cells);
        int64_t count = 1;
        for (int64_t e : view.extents) count *= e;
        region.cells.resize(static_cast<size_t>(std::max<int64_t>(1, count)));
        add_region(std::move(region));
    }

    void reads(int site, const TensorView &, const std::byte *element) override { touch(site, element, false); }
    void stores(int site, const TensorView &, const std::byte *element) override { touch(site, element, true); }

    void add_hazard(const std::string &text) {
        if (std::count(report.hazards.begin(), report.hazards.end(), text)) return;
        report.hazards.push_back(text);
        if (report.hazards.size() >= options_.most_hazards) throw Enough{};
    }

private:
    const LockstepOptions options_;
    std::vector<std::string> sites_;
    std::map<const std::byte *, Region> regions_;  // by their ends
    std::vector<Region *> last_region_;            // of each site

    int kernel_ = -1;                       // that runs
    uint32_t block_ = 0, first_block_ = 0;  // of the launch
    int64_t iteration_ = 0;
    uint64_t epoch_ = 0;
    int32_t thread_ = everyone;
    bool in_thread_loop_ = false;
    std::map<const Barrier *, std::set<int32_t>> arrivals_;

    // Asynchronous copies of the block, in the order of its Commits.
    struct Group {
        uint64_t arrived = 0;  // the epoch in which it was awaited; 0: it is in flight
        int64_t bytes = 0;
    };
    std::vector<Group> groups_;
    size_t arrived_ = 0;      // of these, the first ones
    int64_t open_bytes_ = 0;  // since the last Commit
    bool copies_ahead_ = false;

    void end_block() {
        const size_t left = groups_.size() - arrived_;
        const int64_t open = open_bytes_;
        groups_.clear(), arrived_ = 0, open_bytes_ = 0;
        if (left > 0 || open > 0)
            add_hazard(
                fmt::format("kernel {}, block {}: it ends where {} groups of asynchronous copies are not awaited, and {} bytes in none",
                            kernel().kernel, iteration_, left, open));
    }

    // What the threads of a warp did: by the place and the iterations of loops inside of the thread loop.
    struct Key {
        int site;
        uint64_t path;
        bool operator==(const Key &other) const = default;
    };
    struct HashKey {
        size_t operator()(const Key &k) const {
            return static_cast<size_t>(k.path ^ (static_cast<uint64_t>(k.site) * 0x9e3779b97f4a7c15ULL));
        }
    };
    struct WarpAccess {
        const Region *region = nullptr;
        bool is_store = false;
        std::vector<int64_t> addresses;  // from where the region begins, in bytes
        int64_t bytes = 0;               // of what each of them has
    };
    int64_t warp_ = -1;
    std::vector<uint64_t> path_;
    std::unordered_map<Key, WarpAccess, HashKey> warp_accesses_;

    // The elements of a box in memory that a warp moves.
    struct Moved {
        const Region *region;
        int64_t address;
        bool is_store;
    };
    bool is_moving_ = false;
    std::vector<Moved> moved_;

    KernelCounts &kernel() { return report.kernels[static_cast<size_t>(kernel_)]; }

    void begin_launch(const Loop &loop) {
        auto found =
            std::find_if(report.kernels.begin(), report.kernels.end(), [&](const KernelCounts &k) { return k.kernel == loop.variable; });
        kernel_ = static_cast<int>(found - report.kernels.begin());
        if (found == report.kernels.end()) {
            KernelCounts made;
            made.kernel = loop.variable;
            made.threads = 1;
            walk(loop.body, [&](const TileNode &node) {
                const auto *inner = std::get_if<Loop>(&node);
                if (const int each = inner ? traits_of(inner->kind).threads : 0)
                    made.threads = std::max(made.threads, inner->count->value.integer * each);
                const auto *alloc = std::get_if<Alloc>(&node);
                if (!alloc || alloc->buffer.space != Space::shared) return;
                int64_t bytes = size_of(alloc->buffer.dtype);
                for (const Expr &e : alloc->buffer.extents) bytes *= std::max<int64_t>(0, e->value.integer);
                made.shared_bytes += (bytes + 15) / 16 * 16;
            });
            report.kernels.push_back(made);
        }
        kernel().launches++;
        first_block_ = block_ + 1;
    }

    void add_region(Region region) {
        const std::byte *begin = region.begin, *end = begin + static_cast<int64_t>(region.cells.size()) * region.element_bytes;
        std::erase_if(regions_, [&](const auto &r) {
            return (r.second.begin < end && begin < r.first) || (region.buffer && r.second.buffer == region.buffer);
        });
        std::fill(last_region_.begin(), last_region_.end(), nullptr);
        regions_[end] = std::move(region);
    }

    // Tables have none.
    Region *region_of(int site, const std::byte *element) {
        if (last_region_.size() < sites_.size()) last_region_.resize(sites_.size());
        Region *&last = last_region_[static_cast<size_t>(site)];
        if (last && last->has(element)) return last;
        auto it = regions_.upper_bound(element);
        return last = it != regions_.end() && it->second.has(element) ? &it->second : nullptr;
    }

    bool is_other(int32_t a, int32_t b) { return a != b || (a == everyone && kernel().threads > 1); }

    void touch(int site, const std::byte *element, bool is_store) {
        if (kernel_ < 0) return;  // between launches everything has arrived
        Region *region = region_of(site, element);
        if (region && region->is_own) return;
        if (region && traits_of(region->space).of_thread) return check_own(*region, element, site);
        if (!region) return;
        if (is_moving_) moved_.push_back({region, address_of(*region, element), is_store});
        else if (options_.counts && thread_ >= 0) note(*region, site, element, is_store);
        const auto position = static_cast<size_t>((element - region->begin) / region->element_bytes);
        Cell &cell = region->cells[position];
        Touch now{epoch_, block_, thread_, site};
        const auto meets = [&](const Touch &earlier) {
            if (earlier.epoch == 0) return;
            uint64_t epoch = earlier.epoch;
            if (earlier.group >= 0 && earlier.block == block_) {
                const auto group = static_cast<size_t>(earlier.group);
                if (group >= arrived_) return add_hazard(in_flight(*region, position, earlier, now));
                epoch = groups_[group].arrived;
            }
            const bool in_block = earlier.block == block_ && epoch == epoch_ && kernel().threads > 1 && is_other(earlier.thread, thread_);
            const bool between_blocks = earlier.block != block_ && earlier.block >= first_block_;
            if (in_block || between_blocks) add_hazard(meeting(*region, position, earlier, now));
        };
        meets(cell.write);
        if (is_store) {
            meets(cell.read), meets(cell.earlier_read), meets(cell.first_read);
            if (copies_ahead_) now.group = static_cast<int64_t>(groups_.size()), open_bytes_ += region->element_bytes;
            cell.write = now;
            return;
        }
        if (cell.read.thread != thread_ || cell.read.block != block_) cell.earlier_read = cell.read;
        cell.read = now;
        if (cell.first_read.block < first_block_) cell.first_read = now;
    }

    // Registers that live across steps: the first axis is the thread.
    void check_own(const Region &region, const std::byte *element, int site) {
        const int64_t each = static_cast<int64_t>(region.cells.size()) / std::max<int64_t>(1, region.view.extents[0]);
        const auto position = (element - region.begin) / region.element_bytes;
        const int64_t own = thread_ <= first_warp ? first_warp - thread_ : thread_;
        if (each == 0 || position / each == own) return;
        add_hazard(fmt::format("kernel {}: {} {} {}, which is in registers of {} {}", kernel().kernel, who(thread_),
                               sites_[static_cast<size_t>(site)], element_text(region, static_cast<size_t>(position)),
                               thread_ <= first_warp ? "warp" : "thread", position / each));
    }

    static std::string who(int32_t thread) {
        if (thread == everyone) return "every thread";
        return thread <= first_warp ? "warp " + std::to_string(first_warp - thread) : "thread " + std::to_string(thread);
    }

    static std::string element_text(const Region &region, size_t position) {
        std::string text;
        auto rest = static_cast<int64_t>(position);
        if (region.view.strides != row_major_strides(region.view.extents))
            return region.view.name + ", element " + std::to_string(position);
        for (size_t i = region.view.extents.size(); i-- > 0; rest /= region.view.extents[i])
            text = std::to_string(rest % region.view.extents[i]) + (text.empty() ? "" : ", ") + text;
        return region.view.name + "[" + text + "]";
    }

    std::string meeting(const Region &region, size_t position, const Touch &earlier, const Touch &now) {
        const auto one = [&](const Touch &t) { return who(t.thread) + " " + sites_[static_cast<size_t>(t.site)]; };
        const std::string element = element_text(region, position);
        if (earlier.block != now.block)
            return fmt::format("kernel {}: blocks meet in {}: {} of block {} {}, {} of another block {}", kernel().kernel, element,
                               who(now.thread), iteration_, sites_[static_cast<size_t>(now.site)], who(earlier.thread),
                               sites_[static_cast<size_t>(earlier.site)]);
        return fmt::format("kernel {}, block {}: threads meet in {} with no barrier between them: {}, {}", kernel().kernel, iteration_,
                           element, one(earlier), one(now));
    }

    std::string in_flight(const Region &region, size_t position, const Touch &copy, const Touch &now) {
        return fmt::format("kernel {}, block {}: the asynchronous copy to {} by {} is in flight where {} {}", kernel().kernel, iteration_,
                           element_text(region, position), who(copy.thread), who(now.thread), sites_[static_cast<size_t>(now.site)]);
    }

    void check_arrivals(const Loop &loop) {
        for (const auto &[barrier, threads] : arrivals_)
            if (static_cast<int64_t>(threads.size()) < kernel().threads)
                add_hazard(
                    fmt::format("kernel {}, block {}: {} of {} threads reach a barrier in the loop over threads {}; the others never "
                                "do",
                                kernel().kernel, iteration_, threads.size(), kernel().threads, loop.variable));
            else
                add_hazard(
                    fmt::format("kernel {}, block {}: a barrier stands in the loop over threads {}, whose threads take it as one "
                                "step",
                                kernel().kernel, iteration_, loop.variable));
        arrivals_.clear();
    }

    // ---- counts

    // Where an element lies, from where the region begins, in bytes.
    static int64_t address_of(const Region &region, const std::byte *element) {
        const int64_t in_order = element - region.begin;
        if (!region.buffer || !region.buffer->swizzle) return in_order;
        const int64_t position = in_order / region.element_bytes, columns = region.view.extents.back();
        return (position / columns * columns + region.buffer->swizzle->place(position / columns, position % columns)) *
               region.element_bytes;
    }

    // A chunk that is copied asynchronously is one access.
    void note(const Region &region, int site, const std::byte *element, bool is_store) {
        const bool is_chunk = copies_ahead_ && path_.size() > 1;
        WarpAccess &access = warp_accesses_[{site, is_chunk ? path_[path_.size() - 2] : path_.back()}];
        const int64_t address = address_of(region, element);
        access.region = &region, access.is_store = is_store;
        access.bytes = is_chunk && is_store ? chunk_bytes : region.element_bytes;
        if (address % access.bytes == 0) access.addresses.push_back(address);
    }

    void count_warp() {
        for (const auto &[key, access] : warp_accesses_) count(access);
        warp_accesses_.clear();
    }

    // An operand is loaded by matrices of 8 rows of 16 bytes, each of which is a turn without conflicts; an accumulator by elements, of
    // which a lane has two neighbours in each half of the rows (compiler/instructions/mma.cpp).
    void count(const Move &move) {
        const int64_t columns = move.box.back(), rows = static_cast<int64_t>(moved_.size()) / columns;
        const int64_t bytes = moved_[0].region->element_bytes;
        WarpAccess access{moved_[0].region, moved_[0].is_store, {}, bytes};
        if (bytes == 4) {
            for (int64_t i = 0; i < static_cast<int64_t>(moved_.size()) / warp_threads; i++) {
                access.addresses.clear();
                for (int64_t lane = 0; lane < warp_threads; lane++) {
                    const int64_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
                    access.addresses.push_back(moved_[static_cast<size_t>(row * columns + column)].address);
                }
                count(access, bytes);
            }
            return;
        }
        const auto address = [&](int64_t row, int64_t column) { return moved_[static_cast<size_t>(row * columns + column)].address; };
        const int64_t each = 16 / bytes;
        if (address(0, 1) - address(0, 0) != bytes && bytes == 2) {  // the rows lie along the other axis
            for (int64_t first = 0; first < rows; first += each)
                for (int64_t column = 0; column < columns; column++) access.addresses.push_back(address(first, column));
        } else {
            for (int64_t first = 0; first < columns; first += each)
                for (int64_t row = 0; row < rows; row++) access.addresses.push_back(address(row, first));
        }
        count(access, 16);
    }

    void count(const WarpAccess &access) { count(access, access.bytes); }

    // `bytes`: of what a thread, or a row, has.
    void count(const WarpAccess &access, int64_t bytes) {
        KernelCounts &k = kernel();
        if (access.region->space == Space::shared) {
            WarpAccesses &all = access.is_store ? k.shared_stores : k.shared_reads;
            all.accesses++;
            // Wide elements are served by halves and quarters of a warp.
            const size_t phase = static_cast<size_t>(warp_threads / std::max<int64_t>(1, bytes / bank_bytes));
            for (size_t first = 0; first < access.addresses.size(); first += phase) {
                std::array<std::set<int64_t>, banks> words;
                for (size_t i = first; i < std::min(first + phase, access.addresses.size()); i++)
                    for (int64_t b = 0; b < bytes; b += bank_bytes) {
                        const int64_t word = (access.addresses[i] + b) / bank_bytes;
                        words[static_cast<size_t>(word % banks)].insert(word);
                    }
                size_t most = 0;
                for (const auto &bank : words) most = std::max(most, bank.size());
                all.turns += static_cast<int64_t>(most);
                all.least++;
            }
            return;
        }
        WarpAccesses &all = access.is_store ? k.global_stores : k.global_reads;
        all.accesses++;
        std::set<int64_t> sectors, elements;
        for (int64_t a : access.addresses) sectors.insert(a / sector_bytes), elements.insert(a);
        all.turns += static_cast<int64_t>(sectors.size());
        all.least += (static_cast<int64_t>(elements.size()) * bytes + sector_bytes - 1) / sector_bytes;
    }
};

}  // namespace

LockstepReport run_in_lockstep(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents,
                               const std::map<std::string, Scalar> &parameters, const LockstepOptions &options) {
    Lockstep lockstep(options);
    for (const auto &[name, view] : arguments) lockstep.add_argument(name, view);
    InterpretOptions run;
    run.observer = &lockstep;
    run.backwards = options.backwards;
    try {
        interpret(program, arguments, extents, parameters, run);
    } catch (const Enough &) {
    } catch (const InternalError &e) {
        try {
            lockstep.add_hazard(e.what());
        } catch (const Enough &) {}
    }
    return std::move(lockstep.report);
}

std::string to_text(const LockstepReport &report) {
    std::string text = "  launches   blocks  threads  barriers  shared bytes  kernel\n";
    for (const KernelCounts &k : report.kernels) {
        text += fmt::format("{:>10} {:>8} {:>8} {:>9} {:>13}  {}\n", k.launches, k.blocks, k.threads, k.barriers, k.shared_bytes, k.kernel);
        const auto line = [&](const char *what, const WarpAccesses &all, const char *unit) {
            if (all.accesses == 0) return;
            text += fmt::format("             {:<14} {:>10} accesses of warps, {:>10} {}, {:.2f} times the least\n", what, all.accesses,
                                all.turns, unit, static_cast<double>(all.turns) / static_cast<double>(std::max<int64_t>(1, all.least)));
        };
        line("shared reads", k.shared_reads, "turns of banks"), line("shared stores", k.shared_stores, "turns of banks");
        line("global reads", k.global_reads, "sectors"), line("global stores", k.global_stores, "sectors");
        if (k.awaits > 0)
            text += fmt::format("             {:<14} {:>10} awaits, which find at most {} bytes of a block in flight\n", "copies ahead",
                                k.awaits, k.bytes_in_flight);
    }
    for (const std::string &hazard : report.hazards) text += "hazard: " + hazard + "\n";
    if (report.hazards.empty()) text += "no hazards\n";
    return text;
}

}  // namespace tessera
