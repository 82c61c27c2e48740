// The five answer digits of any problems, in double precision.
#define REAL double

#include <memory>

#include "digits.h"
#include "tile_forward.h"

namespace {

struct Work {
  Decoder decoder;
  std::vector<Activations> layers;
  Lanes lanes;
  Digits digits;
};

}  // namespace

// `digits` is [n][5]: the predicted tokens at positions 10..14 of n problems of 16 tokens each, everything before them
// given; `near` is [n], bit k where the runner-up at the k-th is within `nearness` times the largest |logit|.
extern "C" void workbench_answers(const double* const* weights, int n_layers, int bilinear, const uint8_t* tokens, int n,
                                  double nearness, uint8_t* digits, uint8_t* near) {
  static thread_local std::unique_ptr<Work> work;
  if (!work) work = std::make_unique<Work>();
  pack(work->decoder, weights, n_layers, bilinear != 0);
  work->layers.resize(n_layers);
  for (int start = 0; start < n; start += TILE) {
    const Tile tile{tokens + 16 * start, std::min(TILE, n - start)};
    uint8_t found[TILE * ANSWERS], close[TILE];
    forward(work->decoder, work->layers, work->lanes, tile, false);
    read_digits(work->decoder, work->layers.back(), work->digits, nearness, found, close, 1);
    std::memcpy(digits + start * ANSWERS, found, tile.problems * ANSWERS);
    std::memcpy(near + start, close, tile.problems);
  }
}
