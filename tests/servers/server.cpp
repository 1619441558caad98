// A server of a release: eight threads answer `n alpha` with `folder last`, the last element of alpha * x + 1 for x = 0, 1, …
//
// server SOCKET CURRENT: a request takes the release that the link CURRENT leads to when it begins; one that holds an
// older release goes on with that, and the last to hold it closes it.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shop.h"

namespace {

struct Release {
    std::string folder;
    shop *opened = nullptr;
    ~Release() { shop_close(opened); }
};

class Current {
public:
    explicit Current(const char *link) : link_(link) {}

    // The current release; without one, `shop_error()` says why.
    std::shared_ptr<Release> take() {
        char folder[PATH_MAX];
        const std::lock_guard<std::mutex> held(lock_);
        if (!realpath(link_, folder)) return nullptr;
        if (!release_ || release_->folder != folder) {
            auto next = std::make_shared<Release>();
            next->folder = folder;
            if (shop_open(folder, &next->opened)) return nullptr;
            release_ = std::move(next);
        }
        return release_;
    }

private:
    const char *link_;
    std::mutex lock_;
    std::shared_ptr<Release> release_;
};

std::string answer(Current &current, int n, float alpha) {
    const auto release = current.take();
    if (!release) return std::string("refused ") + shop_error();
    std::vector<float> x(n), ones(n, 1.0f), out(n);
    for (int i = 0; i < n; i++) x[i] = static_cast<float>(i);
    shop_scale_add_axes axes{};
    axes.dtype = PRECAST_FP32;
    axes.BLOCK = PRECAST_ANY;
    if (shop_scale_add(release->opened, PRECAST_CPU, axes, out.data(), x.data(), ones.data(), alpha, n))
        return std::string("refused ") + shop_error();
    return release->folder + " " + std::to_string(out[n - 1]);
}

void serve(int listening, Current &current) {
    for (;;) {
        const int connection = accept(listening, nullptr, nullptr);
        FILE *stream = connection < 0 ? nullptr : fdopen(connection, "r+");
        if (!stream) std::abort();
        int n;
        float alpha;
        while (std::fscanf(stream, "%d %f", &n, &alpha) == 2) {
            const std::string said = answer(current, n, alpha) + "\n";
            if (write(connection, said.data(), said.size()) != static_cast<ssize_t>(said.size())) break;
        }
        std::fclose(stream);
    }
}

}  // namespace

int main(int, char **words) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listening, reinterpret_cast<sockaddr *>(&address), sizeof address) || listen(listening, 64)) return 1;
    std::puts("listening");
    std::fflush(stdout);
    Current current(words[2]);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back(serve, listening, std::ref(current));
    for (auto &thread : threads) thread.join();
}
