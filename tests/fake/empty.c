/* A library without any function for tvm-ffi. */
int fake_nothing(void);

int fake_nothing(void)
{
    return 0;
}
