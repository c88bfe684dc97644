// A file for every construct of the language.
#pragma once

#include <array>
#include <string_view>

namespace stave {

struct LanguageExample {
  std::string_view name;
  std::string_view text;
};

inline constexpr std::array<LanguageExample, 11> kLanguageExamples = {{
    {"one_f_one_b", R"sched(# 1F1B: a backward as soon as one is ready.
schedule one_f_one_b(P = 4, M = 8)

devices P
stages P
microbatches M
place stage s on device s

on device d {
  let warmup = min(M, P - 1 - d)
  repeat warmup     { F(d, next) }
  repeat M - warmup { F(d, next)  B(d, next) }
  repeat warmup     { B(d, next) }
}

expect makespan == (M + P - 1) * (F + B) if message == 0
expect bubble == (P - 1) / (M + P - 1) if message == 0
expect peak_activations(d) == min(M, P - d) for d in devices
)sched"},
    {"interleaved", R"sched(schedule interleaved(P = 4, V = 2, M = 8, N = P)
require N >= P and N <= M                 "a group has P to M microbatches"
require M mod N == 0 or M mod N >= P      "the last group may be short, but not below P"
devices P
stages P * V
microbatches M
place stage s on device s mod P
let chunk(k)  = k mod (N * V) div min(N, M - k div (N * V) * N)
let fwd(d, k) = F(chunk(k) * P + d, next)
let bwd(d, k) = B((V - 1 - chunk(k)) * P + d, next)
on device d {
  let n = M * V
  let warmup = min(n, 2 * (P - 1 - d) + (V - 1) * N)
  for k in 0 .. warmup      { fwd(d, k) }
  for k in warmup .. n      { fwd(d, k)  bwd(d, k - warmup) }
  for k in n - warmup .. n  { bwd(d, k) }
}
expect makespan == (M * V + P - 1) * (F + B) + (2 * P * V - 2) * message
  if P >= 2 and N == P and M mod P == 0 and message <= min(F, B)
)sched"},
    {"slots", R"sched(schedule chimera(P = 4, M = 8)
devices P
stages P
microbatches M
place stage s of microbatch m on device (s if m mod P < P / 2 else P - 1 - s)
on device d {
  for m in microbatches {
    let s = d if m mod P < P / 2 else P - 1 - d
    let start = 2 * P * (m div P) + 2 * (m mod (P / 2))
    F(s, m) at start + s
    B(s, m) at start + 2 * P - 1 - s
  }
}
)sched"},
    {"fill", R"sched(schedule zb_h1(P = 4, M = 8)
devices P
stages P
microbatches M
place stage s on device s
on device d {
  let warmup = min(M, P - 1 - d)
  repeat warmup     { F(d, next) }
  repeat M - warmup { F(d, next)  I(d, next) }
  repeat warmup     { I(d, next) }
  fill { W(d, *) }
  limit activations <= P
}
expect makespan == M * (F + I + W) + (P - 1) * (F + I - W + 4 * message)
  if M >= 2 * P - 1 and W <= min(F, I) and 2 * message <= W
expect peak_activations(d) <= P for d in devices
)sched"},
    {"any", R"sched(schedule zb_v(P = 4, M = 8, budget = 6)
devices P
on device d in 1 .. P { any { I(*, *) }  any { F(*, *) }  fill { W(*, *) }  limit activations <= budget }
on device 0 {
  any  { for m in microbatches { F(d, m) at m - (P - 1 - d)  I(d, m) at m + 0.5 } }
  fill { W(d, *) }
  limit memory <= budget / 2
}
on device (last) { F(last, 0) }
)sched"},
    {"pairs", R"sched(schedule dualpipe(P = 4, M = 8)
place stage s of microbatch m on device (s if m < M / 2 else P - 1 - s)
on device d {
  let p = P / 2  let n = M / 2  let h = min(d, P - 1 - d)
  let a = h      let b = P - 1 - h                               # entered at the near and the far end
  repeat 2 * (p - h - 1) { F(a, next) }
  repeat p - h - 1       { I(b, next)  W(b, next)  F(b, next) }
  for k in 0 .. n - 2 * p + h + 1 {
    if k == 0 and h == p - 1 { F(a, next)  B(b, next) } else { F(a, next) with B(b, next) }
    F(b, next) with B(a, next)
  }
  for k in 0 .. h + 1 {
    if 2 * k < h + 1     { B(b, next) } else if k == 9 { } else { I(b, next) }
  }
  for k in 0 .. p {
    W(b if k <= h and (h + k) mod 2 == 1 else a, next)
    if k < p - h - 1 { I(a, next) }
  }
}
route microbatch m = 0 .. P if down(m) else P .. 2 * P
cost F with B = 2.5
expect makespan == M * (F with B) + (F(0, 1) with B(1, 2))
)sched"},
    {"lists", R"sched(schedule lists(length = [3, 2], empty = [])
slices [5, 3, 2]
microbatches [1, 2, 3]
route microbatch m = [0, 2, 1, 3]
let total = sum(length[i] for i in 0 .. len(length))
let twice = [2 * e for e in reversed(length)]
let most = max([e for e in twice], 3)
let nested = [[1, 2], [3]][0][1]
let here(d) = stages(d)[0] + device(0) + device(0, 1) + len(devices) + slices(2)[0]
let none() = 1
let neither = not (total == 4 or most != 3) and not most < 2
)sched"},
    {"operations", R"sched(op F(s in stages, m in microbatches, q in slices)
  receives activation from F(s - 1, m, q)  after F(s, m, q - 1)
op I(s in stages, m in microbatches, q in slices)
  receives gradient from I(s + 1, m, q)  after F(s, m, q), I(s, m, q + 1)
op W(s in stages, m in microbatches, q in slices)  after I(s, m, q)
op B(s in stages, m in microbatches, q in slices) = I(s, m, q) + W(s, m, q)
op G(s in stages)  optional  on stream reduce  after W(s, *, *)
op O(s in stages)  optional  after G(s), W(s, *, *)
cost F = 1, I = 1, W = 1, G = 0, O = 0, message = 0
memory F = +1, I = -0.5, W = -0.5
)sched"},
    {"papers", R"sched(use training
use "shared/papers.sched"
op R(s in stages, m in microbatches)  after F(s, m)
I(s, m) after R(s, m)
memory F = +0.1, R = +0.9
op O(s in stages, k in 0 .. M / n)  after W(s, n * k .. n * (k + 1))
F(s, m) receives weights from O(s, m div n - 2)
op Out(s in stages, m in microbatches)  on stream copy  after F(s, m)
op Step(d in devices, k in 0 .. 1000)  optional  after Step(d, k - 1)
op A(s in stages, m in microbatches, j in devices)  on device j  receives qkv from F(s, m)
F(s, m) receives context from A(s - 1, m, *)
op X(s in stages)  on device s + 1  if s < 3
on device d { X(d) }
)sched"},
    {"costs", R"sched(cost F = 1, I = 1, W = 1, F with B = 2.5
cost F(s, m) = layers[s] * length[m]
cost message = 0.1
cost message(a, b) = 8 if min(a, b) == 1 and max(a, b) == 2 else 0.1
cost F after B = 0.2
memory F = +1, I = -0.5, W = -0.5
memory weights(s) = 4
freeze W(s, m) = 0.5 if s < P div 2 else 0
freeze W <= 0.8
expect idle(0, memory) + idle(d, filling) == 0 for d in devices
expect period <= makespan for d in 0 .. 3 if message == 0
)sched"},
    {"table", R"sched(schedule toy
devices 2
stages 2
microbatches 2
place stage s on device s
table {
  0: F0 F1 .  B0 B1  # } a brace in a comment
  1: .  F0 B0 F1 B1 2F0 0F7+3B5 Decode(0, 1, 2) G 3O
}
expect makespan == 6
)sched"},
}};

}  // namespace stave
