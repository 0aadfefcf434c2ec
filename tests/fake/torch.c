/* Pieces of a libtorch: what they need and how their symbols are called is all that counts. */
#if FAKE_ABI == 11
int _ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcEE(void);
int _ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcEE(void)
#elif FAKE_ABI == 98
int _ZN3c105ErrorC1ESs(void);
int _ZN3c105ErrorC1ESs(void)
#else
int fake_piece(void);
int fake_piece(void)
#endif
{
    return 0;
}
