/* Programs that are ready to run. */
#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/inside.h"
#include "runtime/mesh/table.h"

/* An operation with what was prepared of it. */
typedef struct Ready {
    TessPlan *plan;    /* of a run of a kernel of the ABI */
    int64_t operation; /* of a start: its number in the mesh, in this run */
} Ready;

struct TessProgram {
    TessMesh *mesh;
    TessProgramParts parts;
    void *table;
    TessProgramKernel *kernels;
    Ready *ready;    /* by operation */
    int32_t *groups; /* by axis */
    void **data;     /* addresses of an operation's arguments */
    uint64_t workspace, hash;
};

void tess_program_destroy(TessProgram *program) {
    int32_t i;
    if (program == NULL) return;
    for (i = 0; program->ready != NULL && i < program->parts.header->operations.count; ++i) free(program->ready[i].plan);
    free(program->ready);
    free(program->kernels);
    free(program->groups);
    free(program->data);
    free(program->table);
    free(program);
}

/* Whether a kernel takes the arguments in these roles. */
static int takes(const TessProgramParts *parts, const TessProgramOperation *operation, const TessKernel *kernel) {
    TessKernelInfo info;
    int32_t i;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (tess_kernel_info(kernel, &info) != TESS_OK || info.tensors != operation->count) return 0;
    for (i = 0; i < info.tensors; ++i) {
        TessTensorInfo tensor;
        memset(&tensor, 0, sizeof tensor);
        tensor.size = sizeof tensor;
        if (tess_kernel_tensor(kernel, i, &tensor) != TESS_OK || tensor.role != parts->arguments[operation->first + i].role) return 0;
    }
    return 1;
}

static int32_t make_plan(TessProgram *program, int32_t i, const TessContext *context, TessFault *fault) {
    const TessProgramParts *parts = &program->parts;
    const TessProgramOperation *operation = &parts->operations[i];
    const TessProgramKernel *kernel = &program->kernels[operation->index];
    const TessTensor **pointers;
    TessTensor *tensors;
    TessContext plain = context != NULL ? *context : tess_context();
    uint64_t bytes = 0;
    int32_t a, status;
    if (kernel->kernel == NULL) return TESS_OK;
    if (!takes(parts, operation, kernel->kernel)) return tess_mesh_refuse(fault, TESS_PROGRAM_KERNEL, -1, i, operation->index);
    tensors = malloc((sizeof(TessTensor) + sizeof(TessTensor *)) * ((size_t)operation->count + 1));
    if (tensors == NULL) return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    pointers = (const TessTensor **)(void *)(tensors + operation->count + 1);
    for (a = 0; a < operation->count; ++a) {
        const TessProgramTensor *said = &parts->tensors[parts->arguments[operation->first + a].tensor];
        tensors[a] = tess_dense(NULL, TESS_F32, said->rank, said->rank > 0 ? said->extents : NULL);
        tensors[a].type = tess_type(said->dtype);
        pointers[a] = &tensors[a];
    }
    if (fault != NULL) plain.fault = fault;
    status = tess_plan_bytes(kernel->kernel, &bytes);
    if (status == TESS_OK) {
        program->ready[i].plan = malloc(bytes > 0 ? bytes : 1);
        status = program->ready[i].plan == NULL
                     ? tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY)
                     : tess_plan_make(kernel->kernel, pointers, kernel->parameters, &plain, program->ready[i].plan, bytes);
    }
    if (status == TESS_OK) {
        uint64_t workspace = 0;
        status = tess_plan_workspace(program->ready[i].plan, &workspace);
        if (workspace > program->workspace) program->workspace = workspace;
    }
    free(tensors);
    return status;
}

static int32_t check_start(const TessProgram *program, int32_t i, TessFault *fault) {
    const TessProgramOperation *operation = &program->parts.operations[i];
    const TessProgramCollective *said = &program->parts.collectives[operation->index];
    const TessCollective collective = tess_program_collective(said);
    const int32_t group = said->axis < 0 ? 0 : program->groups[said->axis];
    TessTask task;
    const int32_t status =
        tess_mesh_check_fields(&collective, tess_mesh_rank(program->mesh, group), tess_mesh_ranks(program->mesh, group), &task, fault);
    if (status != TESS_OK) return status;
    if (!tess_program_fits(&program->parts, operation, &task))
        return tess_mesh_refuse(fault, TESS_PROGRAM_TENSOR, -1, i, program->parts.arguments[operation->first].tensor);
    return TESS_OK;
}

static int32_t fill_in(TessProgram *program, const TessProgramKernel *kernels, const TessContext *context, TessFault *fault) {
    const TessProgramHeader *header = program->parts.header;
    int32_t i, status = TESS_OK;
    size_t arguments = 0;
    for (i = 0; i < header->kernels; ++i)
        if (kernels[i].size < sizeof *kernels || kernels[i].flags != 0 || (kernels[i].kernel == NULL) == (kernels[i].run == NULL))
            return tess_mesh_refuse(fault, TESS_PROGRAM_KERNEL, -1, TESS_NO_NUMBER, i);
    for (i = 0; i < header->operations.count; ++i)
        if ((size_t)program->parts.operations[i].count > arguments) arguments = (size_t)program->parts.operations[i].count;
    program->kernels = malloc(sizeof *kernels * ((size_t)header->kernels + 1));
    program->ready = calloc((size_t)header->operations.count + 1, sizeof(Ready));
    program->groups = calloc((size_t)header->axes + 1, sizeof(int32_t));
    program->data = calloc(arguments + 1, sizeof(void *));
    if (program->kernels == NULL || program->ready == NULL || program->groups == NULL || program->data == NULL)
        return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    if (header->kernels > 0) memcpy(program->kernels, kernels, sizeof *kernels * (size_t)header->kernels);
    if (header->axes > 0) status = tess_mesh_axes(program->mesh, header->extents, header->axes, program->groups, fault);
    for (i = 0; i < header->operations.count && status == TESS_OK; ++i) {
        if (program->parts.operations[i].kind == TESS_PROGRAM_RUN) status = make_plan(program, i, context, fault);
        if (program->parts.operations[i].kind == TESS_PROGRAM_START) status = check_start(program, i, fault);
    }
    return status;
}

int32_t tess_program_make(const TessProgramTable *table, const TessProgramKernel *kernels, int32_t count, TessMesh *mesh,
                          const TessContext *context, TessProgram **program, TessFault *fault) {
    TessProgramTable copy;
    TessProgram *made;
    int32_t status;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (program == NULL || mesh == NULL || (count > 0 && kernels == NULL)) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    *program = NULL;
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    status = tess_program_check(table, fault);
    if (status != TESS_OK) return status;
    made = calloc(1, sizeof *made);
    if (made != NULL) made->table = malloc(table->bytes);
    if (made == NULL || made->table == NULL) {
        free(made);
        return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    }
    memcpy(made->table, table->data, table->bytes);
    copy.data = made->table;
    copy.bytes = table->bytes;
    made->mesh = mesh;
    status = tess_program_open(&copy, &made->parts, fault);
    if (status == TESS_OK && !tess_program_fits_mesh(made->parts.header, mesh->engine.rank, mesh->engine.ranks))
        status = tess_mesh_refuse(fault, TESS_PROGRAM_MESH, -1, mesh->engine.ranks, mesh->engine.rank);
    if (status == TESS_OK && count != made->parts.header->kernels)
        status = tess_mesh_refuse(fault, TESS_PROGRAM_KERNEL, -1, TESS_NO_NUMBER, count);
    if (status == TESS_OK) status = fill_in(made, kernels, context, fault);
    if (status != TESS_OK) {
        tess_program_destroy(made);
        return status;
    }
    made->hash = tess_mesh_mix(mesh->program, made->parts.header->hash);
    *program = made;
    return TESS_OK;
}

uint64_t tess_program_workspace(const TessProgram *program) { return program != NULL ? program->workspace : 0; }

/* Address of a tensor; null for none. */
static void *address(const TessProgram *program, int32_t tensor, void *const *buffers, void *arena) {
    const TessProgramTensor *said;
    const TessProgramBuffer *buffer;
    unsigned char *base;
    if (tensor < 0) return NULL;
    said = &program->parts.tensors[tensor];
    buffer = &program->parts.buffers[said->buffer];
    base = buffer->memory == TESS_PROGRAM_LOCAL ? (unsigned char *)arena + buffer->at : buffers[said->buffer];
    return base != NULL ? base + said->at : NULL;
}

static int32_t run_kernel(TessProgram *program, int32_t i, void *const *buffers, void *arena, const TessContext *context) {
    const TessProgramOperation *operation = &program->parts.operations[i];
    const TessProgramKernel *kernel = &program->kernels[operation->index];
    int32_t a;
    for (a = 0; a < operation->count; ++a)
        program->data[a] = address(program, program->parts.arguments[operation->first + a].tensor, buffers, arena);
    if (program->ready[i].plan != NULL) return tess_plan_run(program->ready[i].plan, program->data, kernel->parameters, context);
    return kernel->run(kernel->state, program->data, context);
}

static int32_t start(TessProgram *program, int32_t i, void *const *buffers, void *arena, TessFault *fault) {
    const TessProgramOperation *operation = &program->parts.operations[i];
    const TessProgramCollective *said = &program->parts.collectives[operation->index];
    TessCollective collective = tess_program_collective(said);
    collective.group = said->axis < 0 ? 0 : program->groups[said->axis];
    collective.input = address(program, program->parts.arguments[operation->first].tensor, buffers, arena);
    collective.result = address(program, program->parts.arguments[operation->first + 1].tensor, buffers, arena);
    return tess_mesh_start_in(program->mesh, program->hash, &collective, &program->ready[i].operation, fault);
}

/* A rank that cannot go on says so to the others. */
static int32_t give_up(TessProgram *program, int32_t i, int32_t status) {
    tess_mesh_fail(program->mesh, TESS_MESH_LOST, i, program->mesh->engine.rank);
    return status;
}

/* In faults of the mesh, operations are numbered as in the table. */
static int32_t translated(const TessProgram *program, int32_t i, int32_t status, TessFault *fault) {
    const int32_t kind = tess_status_code(status);
    int32_t other;
    if (fault == NULL || (kind != TESS_MESH_ORDER && kind != TESS_MESH_LATE && kind != TESS_MESH_LOST)) return status;
    for (other = 0; other <= i; ++other) {
        if (program->parts.operations[other].kind == TESS_PROGRAM_START && program->ready[other].operation == fault->expected) {
            fault->expected = other;
            return status;
        }
    }
    fault->expected = i;
    return status;
}

int32_t tess_mesh_run(TessProgram *program, void *const *buffers, void *arena, const TessContext *context, TessFault *fault) {
    const TessProgramHeader *header;
    TessMesh *mesh;
    int32_t i, status = TESS_OK;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    if (program == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    header = program->parts.header;
    mesh = program->mesh;
    if (mesh->broken.kind != TESS_OK) return tess_mesh_say_broken(mesh, TESS_MESH_BROKEN, fault);
    if (header->arena_bytes > 0 && arena == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_DATA);
    if ((uintptr_t)arena % 64 != 0) return tess_mesh_refuse(fault, TESS_MISALIGNED, -1, 64, TESS_NO_NUMBER);
    for (i = 0; i < header->buffers.count; ++i) {
        const TessProgramBuffer *buffer = &program->parts.buffers[i];
        if (buffer->memory == TESS_PROGRAM_LOCAL || buffer->bytes == 0) continue;
        if (buffers == NULL || buffers[i] == NULL) return tess_mesh_refuse(fault, TESS_NULL_DATA, i, TESS_NO_NUMBER, TESS_NO_NUMBER);
        if ((uintptr_t)buffers[i] % 64 != 0) return tess_mesh_refuse(fault, TESS_MISALIGNED, i, 64, TESS_NO_NUMBER);
    }
    for (i = 0; i < header->operations.count; ++i) program->ready[i].operation = -1;
    for (i = 0; i < header->operations.count && status == TESS_OK; ++i) {
        const TessProgramOperation *operation = &program->parts.operations[i];
        switch (operation->kind) {
        case TESS_PROGRAM_RUN:
            status = run_kernel(program, i, buffers, arena, context);
            if (status != TESS_OK) return give_up(program, i, status);
            status = tess_mesh_progress(mesh);
            if (status != TESS_OK) status = tess_mesh_say_broken(mesh, status, fault);
            break;
        case TESS_PROGRAM_START:
            status = start(program, i, buffers, arena, fault);
            if (status != TESS_OK && mesh->broken.kind == TESS_OK) return give_up(program, i, status);
            break;
        case TESS_PROGRAM_WAIT: status = tess_mesh_wait(mesh, program->ready[operation->index].operation, fault); break;
        default: break;
        }
    }
    return status == TESS_OK ? TESS_OK : translated(program, i - 1, status, fault);
}
