/* Launches of a run as one graph of the driver: launching it costs what a few kernels cost, and on the device the next
 * kernel begins sooner than out of a stream.
 *
 * The launches of a program follow from its dims alone, unless the host reads a value of the device on the way. So the
 * first run for a set of dims launches as always, and each launch becomes a node too, behind the one before. Later runs
 * go through the program again, which costs little, but its launches only look whether their node is as it was:
 * pointers that the caller gave may differ, or memory that has grown; such nodes are changed. Then the graph is
 * launched.
 *
 * What a library launches for a kernel is captured, as a graph of its own that is one node; when its pointers change,
 * it is captured again. Its kernels neither wait nor let others begin early: edges to and from it are full ones.
 *
 * A context keeps a few graphs, and the oldest makes way. A run that is observed (a profile) or captured uses none.
 */
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = 999 }; /* the driver's error of that name */

static const ptc_cuda_model *device_of(const ptc_rt_call_state *call) { return call->model->device_model; }

static void drop(const ptc_cuda_driver *driver, ptc_cuda_graph *graph) {
  if (graph->exec)
    driver->graph_exec_destroy(graph->exec);
  if (graph->graph)
    driver->graph_destroy(graph->graph);
  free(graph->symbols);
  free(graph->nodes);
  free(graph->parameters);
  *graph = (ptc_cuda_graph){0};
}

void ptc_cuda_graph_close(const ptc_cuda_driver *driver, ptc_cuda_ctx *own) {
  for (uint32_t i = 0; i < PTC_CUDA_GRAPHS; i++)
    drop(driver, &own->graphs[i]);
}

static ptc_cuda_graph *find(const ptc_rt_call_state *call, ptc_cuda_ctx *own, uint32_t count) {
  for (uint32_t i = 0; i < PTC_CUDA_GRAPHS; i++) {
    ptc_cuda_graph *graph = &own->graphs[i];
    if (graph->variant == call->variant && graph->symbol_count == count &&
        (count == 0 || memcmp(graph->symbols, call->ctx->symbols, count * sizeof(int64_t)) == 0))
      return graph;
  }
  return 0;
}

static bool starts_early(const ptc_model *model, const ptc_cuda_driver *driver) {
  uint64_t capability = model->descriptor->levels[model->level].features & PTC_RT_CUDA_CAPABILITY;
  return driver->graph_add_edges && capability >= PTC_CUDA_CAPABILITY_OF_EARLY_STARTS;
}

/* Launches that the caller captures become nodes of its graph; the driver lets no graph be launched there. */
static bool is_captured(const ptc_rt_call_state *call, const ptc_cuda_ctx *own) {
  int captures = 0;
  return call->stream != own->stream && device_of(call)->driver.stream_captures(call->stream, &captures) == 0 &&
         captures != 0;
}

void ptc_cuda_graph_begin(ptc_rt_call_state *call) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_driver *driver = &device_of(call)->driver;
  own->graph = 0;
  if (!call->model->descriptor->device_code->records_graphs || call->model->profile || is_captured(call, own))
    return;
  uint32_t count = call->function->interface->symbol_count;
  ptc_cuda_graph *graph = find(call, own, count);
  if (graph) {
    graph->next = 0;
    own->graph = graph->state == PTC_CUDA_GRAPH_REPLAYS ? graph : 0;
    return;
  }
  graph = &own->graphs[own->oldest_graph++ % PTC_CUDA_GRAPHS];
  drop(driver, graph);
  int64_t *symbols = malloc((count + 1) * sizeof(int64_t));
  if (!symbols || driver->graph_create(&graph->graph, 0) != 0) { /* the run needs none */
    free(symbols);
    return;
  }
  if (count)
    memcpy(symbols, call->ctx->symbols, count * sizeof(int64_t));
  graph->variant = call->variant;
  graph->symbols = symbols;
  graph->symbol_count = count;
  graph->state = PTC_CUDA_GRAPH_RECORDS;
  graph->starts_early = starts_early(call->model, driver);
  own->graph = graph;
}

void ptc_cuda_graph_give_up(ptc_rt_call_state *call) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  if (own->graph)
    own->graph->state = PTC_CUDA_GRAPH_UNUSABLE;
  own->graph = 0;
}

/* Room for one more node and its parameters. */
static bool reserve(ptc_cuda_graph *graph, uint32_t parameters) {
  if (graph->node_count == graph->node_capacity) {
    uint32_t capacity = graph->node_capacity ? 2 * graph->node_capacity : 64;
    void *nodes = realloc(graph->nodes, capacity * sizeof(*graph->nodes));
    if (!nodes)
      return false;
    graph->nodes = nodes;
    graph->node_capacity = capacity;
  }
  if (graph->parameter_count + parameters > graph->parameter_capacity) {
    uint32_t capacity = 2 * graph->parameter_capacity + parameters + 256;
    void *values = realloc(graph->parameters, capacity * sizeof(*graph->parameters));
    if (!values)
      return false;
    graph->parameters = values;
    graph->parameter_capacity = capacity;
  }
  return true;
}

/* What the next node comes behind; NULL: it is the first. */
static const ptc_cuda_node *last_of(const ptc_cuda_graph *graph) {
  return graph->node_count ? &graph->nodes[graph->node_count - 1] : 0;
}

/* Kernels that wait themselves begin while it still runs: what precedes their first access, and the
 * launch, are hidden. A chain of such waits is complete, since every kernel of the graph has one. Most begin when all
 * blocks in front of them have ended, since they would gather on the multiprocessors that are free; one whose blocks
 * have a multiprocessor each, when those have begun. */
static bool add_node(const ptc_cuda_driver *driver, ptc_cuda_graph *graph, void **node, const ptc_cuda_launch *launch) {
  enum { PROGRAMMATIC = 1, BEGUN = 2 }; /* the first is both a port and a type */
  enum { HALF_OF_SHARED = 114 << 10 };  /* of a multiprocessor's memory, where there is the most */
  bool is_alone = launch->shared_bytes > HALF_OF_SHARED;
  const ptc_cuda_edge edge = {.from_port = is_alone ? BEGUN : PROGRAMMATIC, .type = PROGRAMMATIC};
  const ptc_cuda_node *before = last_of(graph);
  bool early = before && !before->is_work && graph->starts_early;
  if (driver->graph_add_kernel(node, graph->graph, before ? &before->node : 0, before && !early ? 1 : 0, launch) != 0)
    return false;
  return !early || driver->graph_add_edges(graph->graph, &before->node, node, &edge, 1) == 0;
}

static bool record(const ptc_cuda_driver *driver, ptc_cuda_graph *graph, uint32_t kernel, const ptc_cuda_launch *launch,
                   uint32_t count) {
  if (!reserve(graph, count))
    return false;
  ptc_cuda_node *node = &graph->nodes[graph->node_count];
  *node = (ptc_cuda_node){.kernel = kernel, .grid = launch->grid[0], .first = graph->parameter_count, .count = count};
  if (!add_node(driver, graph, &node->node, launch))
    return false;
  for (uint32_t i = 0; i < count; i++)
    memcpy(&graph->parameters[graph->parameter_count++], launch->parameters[i], sizeof(uint64_t));
  graph->node_count++;
  return true;
}

static bool is_same(const ptc_cuda_graph *graph, const ptc_cuda_node *node, const ptc_cuda_launch *launch,
                    uint32_t count) {
  bool same = node->count == count && node->grid == launch->grid[0];
  for (uint32_t i = 0; same && i < count; i++)
    same = memcmp(&graph->parameters[node->first + i], launch->parameters[i], sizeof(uint64_t)) == 0;
  return same;
}

bool ptc_cuda_graph_has(const ptc_cuda_ctx *own, const ptc_cuda_launch *launch, uint32_t count) {
  const ptc_cuda_graph *graph = own->graph;
  return graph && graph->state == PTC_CUDA_GRAPH_REPLAYS && graph->next < graph->node_count &&
         is_same(graph, &graph->nodes[graph->next], launch, count);
}

static int replay(const ptc_cuda_driver *driver, ptc_cuda_graph *graph, uint32_t kernel, const ptc_cuda_launch *launch,
                  uint32_t count) {
  ptc_cuda_node *node = graph->next < graph->node_count ? &graph->nodes[graph->next++] : 0;
  if (!node || node->kernel != kernel || node->count != count || node->is_work)
    return UNKNOWN; /* programs are functions of their dims */
  if (is_same(graph, node, launch, count))
    return 0;
  for (uint32_t i = 0; i < count; i++)
    memcpy(&graph->parameters[node->first + i], launch->parameters[i], sizeof(uint64_t));
  node->grid = launch->grid[0];
  return driver->graph_set_kernel(graph->exec, node->node, launch);
}

int ptc_cuda_graph_add(ptc_rt_call_state *call, uint32_t kernel, const ptc_cuda_launch *launch, uint32_t count,
                       bool *done) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_driver *driver = &device_of(call)->driver;
  *done = own->graph->state == PTC_CUDA_GRAPH_REPLAYS;
  if (*done)
    return replay(driver, own->graph, kernel, launch, count);
  if (!record(driver, own->graph, kernel, launch, count))
    ptc_cuda_graph_give_up(call);
  return 0;
}

/* ---- libraries' work ---- */

/* On the context's own stream, to which nothing else comes meanwhile. */
static int capture(const ptc_rt_call_state *call, ptc_cuda_work *work, void **graph) {
  enum { RELAXED = 2 }; /* other threads may do what they like */
  const ptc_cuda_model *device = device_of(call);
  const ptc_cuda_ctx *own = call->ctx->device_ctx;
  int code = device->driver.capture_begin(own->stream, RELAXED);
  if (code != 0)
    return code;
  int failed = ptc_cuda_do_work(device, work, own->stream);
  code = device->driver.capture_end(own->stream, graph);
  return code != 0 ? code : failed ? UNKNOWN : 0;
}

void *ptc_cuda_graph_of_work(const ptc_rt_call_state *call, ptc_cuda_work *work, void **graph) {
  void *exec = 0;
  bool done = work->has_run && capture(call, work, graph) == 0; /* what is loaded at first is no part of a graph */
  return done && device_of(call)->driver.graph_instantiate(&exec, *graph, 0) == 0 ? exec : 0;
}

static bool record_work(const ptc_rt_call_state *call, ptc_cuda_graph *graph, uint32_t kernel, ptc_cuda_work *work) {
  const ptc_cuda_driver *driver = &device_of(call)->driver;
  void *captured = 0;
  if (!reserve(graph, PTC_CUDA_PLACES))
    return false;
  ptc_cuda_node *node = &graph->nodes[graph->node_count];
  const ptc_cuda_node *before = last_of(graph);
  *node = (ptc_cuda_node){.kernel = kernel, .first = graph->parameter_count, .count = PTC_CUDA_PLACES, .is_work = true};
  bool done =
      capture(call, work, &captured) == 0 &&
      driver->graph_add_child(&node->node, graph->graph, before ? &before->node : 0, before ? 1 : 0, captured) == 0;
  if (captured) /* the node has a copy */
    driver->graph_destroy(captured);
  if (!done)
    return false;
  memcpy(&graph->parameters[node->first], work->places, sizeof(work->places));
  graph->parameter_count += PTC_CUDA_PLACES;
  graph->node_count++;
  return true;
}

static int replay_work(const ptc_rt_call_state *call, ptc_cuda_graph *graph, uint32_t kernel, ptc_cuda_work *work) {
  const ptc_cuda_driver *driver = &device_of(call)->driver;
  const ptc_cuda_node *node = graph->next < graph->node_count ? &graph->nodes[graph->next++] : 0;
  void *captured = 0;
  if (!node || node->kernel != kernel || !node->is_work)
    return UNKNOWN;
  uint64_t *places = &graph->parameters[node->first];
  if (memcmp(places, work->places, sizeof(work->places)) == 0)
    return 0;
  int code = capture(call, work, &captured);
  if (code == 0)
    code = driver->graph_set_child(graph->exec, node->node, captured);
  if (captured)
    driver->graph_destroy(captured);
  if (code == 0)
    memcpy(places, work->places, sizeof(work->places));
  return code;
}

int ptc_cuda_graph_add_work(ptc_rt_call_state *call, uint32_t kernel, ptc_cuda_work *work) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  if (own->graph->state == PTC_CUDA_GRAPH_REPLAYS)
    return replay_work(call, own->graph, kernel, work);
  if (!record_work(call, own->graph, kernel, work))
    ptc_cuda_graph_give_up(call);
  return 0;
}

/* ---- the end ---- */

int ptc_cuda_graph_end(ptc_rt_call_state *call, bool failed) {
  ptc_cuda_ctx *own = call->ctx->device_ctx;
  const ptc_cuda_driver *driver = &device_of(call)->driver;
  ptc_cuda_graph *graph = own->graph;
  own->graph = 0;
  if (!graph)
    return 0;
  if (failed) {
    drop(driver, graph);
    return 0;
  }
  if (graph->state == PTC_CUDA_GRAPH_REPLAYS)
    return graph->node_count ? driver->graph_launch(graph->exec, call->stream) : 0;
  graph->state = PTC_CUDA_GRAPH_REPLAYS;
  if (graph->node_count && driver->graph_instantiate(&graph->exec, graph->graph, 0) != 0)
    graph->state = PTC_CUDA_GRAPH_UNUSABLE; /* the next runs launch one by one */
  return 0;
}
