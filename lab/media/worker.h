// The worker process of media: takes requests from its channel, decodes token by token in batches,
// and sends text back.
//
// BlazeRunner::step() decodes one token for every sequence in the batch; the pipeline behind it is
// a mock whose cost per token is a fixed amount of arithmetic. Faults of the worker (see
// README.md): poll, clock, params, hang, device. One thread; returns only when the process shall
// end.
#pragma once

#include "lab/common/options.h"
#include "lab/media/channel.h"

namespace lab::media {

int run_worker(const Options& options, int number, Channel& channel);

}  // namespace lab::media
