#include "runtime/mesh/engine_gloo.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/unbound_buffer.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <memory>
#include <new>
#include <set>
#include <vector>

namespace {

constexpr int tags = 4;
constexpr uint64_t byte_bits = 36;

// Gloo waits for its buffers and cannot be asked without ending its connections; what it would wait for is seen from within. Nothing of
// this class is made.
class Inside : public gloo::transport::tcp::UnboundBuffer {
public:
    static auto lock() { return &Inside::m_; }
    static auto completions(bool receives) { return receives ? &Inside::recvCompletions_ : &Inside::sendCompletions_; }
    static auto failure() { return &Inside::ex_; }
};

struct Message {
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    int32_t peer;
    bool receives;

    // 0: not yet, 1: done, 2: failed
    int state() const {
        auto &inside = static_cast<gloo::transport::tcp::UnboundBuffer &>(*buffer);
        const std::lock_guard<std::mutex> lock(inside.*Inside::lock());
        return inside.*Inside::completions(receives) > 0 ? 1 : inside.*Inside::failure() != nullptr ? 2 : 0;
    }
};

// Gloo writes to connections that may be closed, which by default ends the process. While one of these is there, it does not; threads that
// are begun meanwhile never see the signal.
class WithoutPipeSignal {
public:
    WithoutPipeSignal() {
        sigset_t pending;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~WithoutPipeSignal() {
        const timespec at_once = {};
        if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    WithoutPipeSignal(const WithoutPipeSignal &) = delete;
    WithoutPipeSignal &operator=(const WithoutPipeSignal &) = delete;

private:
    sigset_t pipe_, before_;
    bool was_pending_;
};

struct State {
    std::shared_ptr<gloo::rendezvous::Context> connections;
    bool connected = false;
    std::vector<std::vector<int32_t>> groups;
    std::set<Message *> open;
    bool closed = false;

    void close() noexcept {
        if (closed) return;
        closed = true;
        const WithoutPipeSignal quiet;
        try {
            if (connected) connections->closeConnections();
        } catch (...) {}
        for (Message *message : open) delete message;
        open.clear();
    }
};

State &state_of(void *state) { return *static_cast<State *>(state); }

int32_t name_group(void *self, const int32_t *ranks, int32_t n, int32_t *group) {
    try {
        state_of(self).groups.emplace_back(ranks, ranks + n);
    } catch (...) { return TESS_MESH_MEMORY; }
    *group = int32_t(state_of(self).groups.size()) - 1;
    return TESS_OK;
}

// Messages of different lengths have slots of their own: Gloo ends a process that gets more bytes than it asked for.
int32_t begin(State &state, int32_t group, int32_t peer, uint32_t tag, void *data, uint64_t bytes, bool receives, TessRequest *request) {
    if (group < 0 || size_t(group) >= state.groups.size() || tag >= tags) return TESS_MESH_GROUP;
    if (peer < 0 || size_t(peer) >= state.groups[size_t(group)].size()) return TESS_MESH_RANK;
    if (bytes >= uint64_t(1) << byte_bits) return TESS_MESH_COUNT;
    const int32_t rank = state.groups[size_t(group)][size_t(peer)];
    const uint64_t slot = uint64_t(group * tags + int32_t(tag)) << byte_bits | bytes;
    request->word[0] = 0;
    const WithoutPipeSignal quiet;
    try {
        std::unique_ptr<Message> message(new Message{state.connections->createUnboundBuffer(data, bytes), rank, receives});
        state.open.insert(message.get());
        Message *kept = message.release();
        request->word[0] = reinterpret_cast<uintptr_t>(kept);
        if (receives) kept->buffer->recv(rank, slot, 0, bytes);
        else kept->buffer->send(rank, slot, 0, bytes);
    } catch (const std::bad_alloc &) { return TESS_MESH_MEMORY; } catch (...) {
        return tess_engine_status(TESS_MESH_LOST, rank);
    }
    return TESS_OK;
}

int32_t send_message(void *self, int32_t group, int32_t to, uint32_t tag, const void *data, uint64_t bytes, TessRequest *request) {
    return begin(state_of(self), group, to, tag, const_cast<void *>(data), bytes, false, request);
}

int32_t receive_message(void *self, int32_t group, int32_t from, uint32_t tag, void *data, uint64_t bytes, TessRequest *request) {
    return begin(state_of(self), group, from, tag, data, bytes, true, request);
}

int32_t test_message(void *self, TessRequest *request, int32_t *done) {
    auto *message = reinterpret_cast<Message *>(request->word[0]);
    const int state = message->state();
    *done = state == 1;
    if (state == 2) return tess_engine_status(TESS_MESH_LOST, message->peer);
    if (state == 1) {
        state_of(self).open.erase(message);
        delete message;
    }
    return TESS_OK;
}

// Closed connections are what other ranks see at once.
int32_t give_up(void *self, int32_t) {
    state_of(self).close();
    return TESS_OK;
}

void close_rank(void *self) {
    state_of(self).close();
    delete &state_of(self);
}

}  // namespace

int32_t tess_gloo_engine(const char *folder, const char *host, int32_t rank, int32_t ranks, int64_t timeout_ms, TessEngine *engine) {
    if (folder == nullptr || engine == nullptr) return TESS_NULL_ARGUMENT;
    if (ranks < 1 || ranks > TESS_MESH_MAX_RANKS || rank < 0 || rank >= ranks) return TESS_MESH_RANK;
    std::unique_ptr<State> state;
    const WithoutPipeSignal quiet;
    try {
        state = std::make_unique<State>();
        gloo::transport::tcp::attr attributes;
        if (host != nullptr) attributes.hostname = host;
        auto device = gloo::transport::tcp::CreateDevice(attributes);
        gloo::rendezvous::FileStore store(folder);
        state->connections = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
        state->connections->setTimeout(std::chrono::milliseconds(timeout_ms < 1 ? 1 : timeout_ms));
        if (ranks > 1) {
            state->connections->connectFullMesh(store, device);
            state->connected = true;
        }
        auto &all = state->groups.emplace_back();
        for (int32_t r = 0; r < ranks; ++r) all.push_back(r);
    } catch (const gloo::IoException &) { return TESS_MESH_LATE; } catch (const std::bad_alloc &) {
        return TESS_MESH_MEMORY;
    } catch (...) { return TESS_MESH_ENGINE; }
    *engine = TessEngine{};
    engine->size = sizeof *engine;
    engine->flags = TESS_ENGINE_GOODBYE;  // a connection that is closed drops what the other side has not read
    engine->rank = rank;
    engine->ranks = ranks;
    engine->name = "gloo";
    engine->group = name_group;
    engine->send = send_message;
    engine->receive = receive_message;
    engine->test = test_message;
    engine->abort = give_up;
    engine->close = close_rank;
    engine->state = state.release();
    return TESS_OK;
}
