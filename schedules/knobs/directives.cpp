#include "schedules/knobs/directives.h"

#include "schedules/knobs/notation.h"

namespace tessera {

Knobs with_directives(const Knobs &knobs, const std::function<bool(const std::string &)> &is_dim, const RefuseDirective &refuse) {
    Knobs k = knobs;
    k.directives.clear();
    for (size_t i = 0; i < knobs.directives.size(); i++) {
        const Directive &d = knobs.directives[i];
        const std::string subject = "directive '" + d.id + "' (" + d.op + ")",
                          remove = "delete it with {\"id\": \"" + d.id + "\", \"op\": null}.";
        if (d.op == "unroll" || d.op == "vectorize") {
            const LoopName loop = parse_loop(d.loop, is_dim);
            if (!loop.level.empty())
                refuse(i, "schedule.directive",
                       subject + " names '" + d.loop + "', a loop over tiles, and only a loop point by point can be " +
                           (d.op == "unroll" ? "unrolled" : "vectorized") + "; name a dim" +
                           (loop.dim.empty() ? "" : " ('" + loop.dim + "')") + ", or " + remove);
            if (d.factor < 1) refuse(i, "schedule.factor", subject + " has no factor; say by how much, as in \"factor\": 8.");
            (d.op == "unroll" ? k.unroll : k.vector)[loop.dim] = d.factor;
        } else {
            k.parallel.push_back(d.loop);
        }
    }
    return k;
}

}  // namespace tessera
