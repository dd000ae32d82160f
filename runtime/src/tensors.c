/* The generic entry: the same runs over tensors that carry their own type and shape, all of it checked. */
#include "runtime.h"

#include <stdio.h>

static const ptc_rt_function *enter(ptc_ctx *ctx, uint32_t index) {
  if (!ctx || !ptc_rt_enter(ctx))
    return 0;
  if (index < ctx->model->descriptor->function_count)
    return &ctx->model->descriptor->functions[index];
  snprintf(ctx->error, PTC_RT_ERROR_SIZE, "there is no function %u", (unsigned)index);
  ptc_rt_leave(ctx);
  return 0;
}

size_t ptc_rt_tensor_workspace_size(ptc_ctx *ctx, uint32_t index, const ptc_tensor *inputs) {
  const ptc_rt_function *function = enter(ctx, index);
  if (!function)
    return PTC_NO_SIZE;
  size_t bytes = PTC_NO_SIZE;
  if (ptc_rt_bind(ctx, function, inputs, false) == PTC_OK)
    bytes = ptc_rt_needed_bytes(ctx->model, function, ctx->symbols, ctx->error);
  ptc_rt_leave(ctx);
  return bytes;
}

ptc_status ptc_rt_tensor_output_shapes(ptc_ctx *ctx, uint32_t index, const ptc_tensor *inputs, int64_t *const *shapes) {
  const ptc_rt_function *function = enter(ctx, index);
  if (!function)
    return PTC_INVALID_ARGUMENT;
  ptc_status status = ptc_rt_bind(ctx, function, inputs, false);
  if (status == PTC_OK)
    status = ptc_rt_output_extents(function, ctx->symbols, shapes, ctx->error);
  ptc_rt_leave(ctx);
  return status;
}

ptc_status ptc_rt_tensor_warmup(ptc_ctx *ctx, uint32_t index, const ptc_tensor *inputs) {
  const ptc_rt_function *function = enter(ctx, index);
  if (!function)
    return PTC_INVALID_ARGUMENT;
  ptc_status status = ptc_rt_bind(ctx, function, inputs, false);
  if (status == PTC_OK)
    status = ptc_rt_reserve(ctx, function, ctx->symbols);
  if (status == PTC_OK)
    ptc_rt_prepare(ctx->model);
  ptc_rt_leave(ctx);
  return status;
}

ptc_status ptc_rt_tensor_run(ptc_ctx *ctx, uint32_t index, const ptc_tensor *inputs, ptc_tensor *outputs,
                             void *workspace, void *stream) {
  const ptc_rt_function *function = enter(ctx, index);
  if (!function)
    return PTC_INVALID_ARGUMENT;
  ptc_status status = ptc_rt_bind(ctx, function, inputs, true);
  if (status == PTC_OK)
    status = ptc_rt_check_outputs(ctx, function, outputs);
  if (status == PTC_OK)
    status = ptc_rt_execute(ctx, function, workspace, stream);
  ptc_rt_leave(ctx);
  return status;
}

ptc_status ptc_rt_tensor_run_call(const ptc_call *call) {
  if (!call || call->struct_size < offsetof(ptc_call, reserved) + sizeof(call->reserved))
    return PTC_INVALID_ARGUMENT;
  return ptc_rt_tensor_run(call->ctx, call->function, call->inputs, call->outputs, call->workspace, call->stream);
}
