/* Showing values inside the model to an observer. Programs without taps do not refer to it, so the linker drops it. */
#include "runtime.h"

static const char *or_empty(const char *text) { return text ? text : ""; }

void ptc_rt_tap(ptc_rt_call *call, uint32_t index, void *value, int64_t *shape) {
  const ptc_rt_call_state *state = (const ptc_rt_call_state *)call;
  const ptc_model *model = state->model;
  if (!model->tap)
    return;
  const ptc_rt_tap_site *site = &state->variant->taps[index];
  const ptc_tensor tensor = {.data = value,
                             .device = {PTC_CPU, 0},
                             .rank = (int32_t)site->rank,
                             .dtype = site->dtype,
                             .shape = shape,
                             .strides = shape + site->rank};
  ptc_tap tap = {.struct_size = sizeof(ptc_tap),
                 .node = or_empty(site->node),
                 .op = or_empty(site->op),
                 .output = or_empty(site->output),
                 .kernel = "",
                 .nodes = "",
                 .launch = site->launch,
                 .number = site->number,
                 .tensor = &tensor};
  if (site->launch < state->variant->launch_count) {
    const ptc_rt_launch_site *launch = &state->variant->launches[site->launch];
    tap.nodes = or_empty(launch->nodes);
    tap.kernel = model->descriptor->kernel_names && launch->kernel != UINT32_MAX
                     ? or_empty(model->descriptor->kernel_names[launch->kernel])
                     : "";
  }
  ptc_rt_fpmode_restore(*state->caller_mode);
  model->tap(model->tap_state, &tap);
  (void)ptc_rt_fpmode_set_default();
}
