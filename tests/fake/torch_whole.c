/* What khub needs at least of a libtorch, so that it can be opened: nothing of it works. It remembers how
 * many threads were asked for. */
static int threads;

#define ENTRY(name)                                                                                          \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return 0;                                                                                            \
    }

ENTRY(aoti_torch_call_dispatcher)
ENTRY(aoti_torch_grad_mode_is_enabled)
ENTRY(aoti_torch_grad_mode_set_enabled)
ENTRY(aoti_torch_create_tensor_from_blob_v2)
ENTRY(aoti_torch__reinterpret_tensor)
ENTRY(aoti_torch_delete_tensor_object)
ENTRY(aoti_torch_get_data_ptr)
ENTRY(aoti_torch_get_dim)
ENTRY(aoti_torch_get_sizes)
ENTRY(aoti_torch_get_strides)
ENTRY(aoti_torch_get_dtype)
ENTRY(aoti_torch_get_device_type)
ENTRY(aoti_torch_get_device_index)
ENTRY(_Znwm)
ENTRY(_ZdlPv)
ENTRY(_ZN3c1010Dispatcher13realSingletonEv)
ENTRY(_ZN3c1010Dispatcher13getAllOpNamesEv)
ENTRY(_ZN3c1010Dispatcher6findOpERKNS_12OperatorNameE)
ENTRY(_ZNK3c104impl13OperatorEntry9dumpStateB5cxx11Ev)

void _ZN2at15set_num_threadsEi(int count);
void _ZN2at15set_num_threadsEi(int count)
{
    threads = count;
}

int fake_threads(void);
int fake_threads(void)
{
    return threads;
}
