"""Names that C and C++ have taken: keywords; macros and names of ISO C's headers, as gcc with glibc has them.

In: nothing. Out: sets. Names that begin with `__` or `_` and a capital are the compiler's own and not listed.
"""

from __future__ import annotations

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
    unsigned using virtual void volatile wchar_t while xor xor_eq
"""

_MACROS = """
    AIO_PRIO_DELTA_MAX ATOMIC_BOOL_LOCK_FREE ATOMIC_CHAR16_T_LOCK_FREE ATOMIC_CHAR32_T_LOCK_FREE
    ATOMIC_CHAR_LOCK_FREE ATOMIC_FLAG_INIT ATOMIC_INT_LOCK_FREE ATOMIC_LLONG_LOCK_FREE ATOMIC_LONG_LOCK_FREE
    ATOMIC_POINTER_LOCK_FREE ATOMIC_SHORT_LOCK_FREE ATOMIC_WCHAR_T_LOCK_FREE BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX
    BC_STRING_MAX BIG_ENDIAN BUFSIZ BUS_ADRALN BUS_ADRERR BUS_MCEERR_AO BUS_MCEERR_AR BUS_OBJERR BYTE_ORDER
    CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CLD_CONTINUED CLD_DUMPED CLD_EXITED CLD_KILLED CLD_STOPPED
    CLD_TRAPPED CLOCKS_PER_SEC CLOCK_BOOTTIME CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE
    CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE
    CLOCK_TAI CLOCK_THREAD_CPUTIME_ID COLL_WEIGHTS_MAX DBL_DECIMAL_DIG DBL_DIG DBL_EPSILON DBL_HAS_SUBNORM
    DBL_MANT_DIG DBL_MAX DBL_MAX_10_EXP DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP DBL_MIN_EXP DBL_TRUE_MIN DECIMAL_DIG
    DELAYTIMER_MAX E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD
    EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED
    ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH
    EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED
    EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE
    EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS
    ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT
    ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP
    ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT
    EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH
    ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL
    EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_SETSIZE FE_ALL_EXCEPT FE_DFL_ENV FE_DIVBYZERO FE_DOWNWARD
    FE_INEXACT FE_INVALID FE_OVERFLOW FE_TONEAREST FE_TOWARDZERO FE_UNDERFLOW FE_UPWARD FILENAME_MAX
    FLT_DECIMAL_DIG FLT_DIG FLT_EPSILON FLT_EVAL_METHOD FLT_HAS_SUBNORM FLT_MANT_DIG FLT_MAX FLT_MAX_10_EXP
    FLT_MAX_EXP FLT_MIN FLT_MIN_10_EXP FLT_MIN_EXP FLT_RADIX FLT_ROUNDS FLT_TRUE_MIN FOPEN_MAX FPE_CONDTRAP
    FPE_FLTDIV FPE_FLTINV FPE_FLTOVF FPE_FLTRES FPE_FLTSUB FPE_FLTUND FPE_FLTUNK FPE_INTDIV FPE_INTOVF FP_ILOGB0
    FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_XSTATE_MAGIC1 FP_XSTATE_MAGIC2
    FP_XSTATE_MAGIC2_SIZE FP_ZERO HOST_NAME_MAX HUGE_VAL HUGE_VALF HUGE_VALL I ILL_BADIADDR ILL_BADSTK
    ILL_COPROC ILL_ILLADR ILL_ILLOPC ILL_ILLOPN ILL_ILLTRP ILL_PRVOPC ILL_PRVREG INFINITY INT16_MAX INT16_MIN
    INT32_MAX INT32_MIN INT64_MAX INT64_MIN INT8_MAX INT8_MIN INTMAX_MAX INTMAX_MIN INTPTR_MAX INTPTR_MIN
    INT_FAST16_MAX INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX INT_FAST64_MIN INT_FAST8_MAX
    INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX
    INT_LEAST64_MIN INT_LEAST8_MAX INT_LEAST8_MIN INT_MAX INT_MIN LC_ADDRESS LC_ADDRESS_MASK LC_ALL LC_ALL_MASK
    LC_COLLATE LC_COLLATE_MASK LC_CTYPE LC_CTYPE_MASK LC_GLOBAL_LOCALE LC_IDENTIFICATION LC_IDENTIFICATION_MASK
    LC_MEASUREMENT LC_MEASUREMENT_MASK LC_MESSAGES LC_MESSAGES_MASK LC_MONETARY LC_MONETARY_MASK LC_NAME
    LC_NAME_MASK LC_NUMERIC LC_NUMERIC_MASK LC_PAPER LC_PAPER_MASK LC_TELEPHONE LC_TELEPHONE_MASK LC_TIME
    LC_TIME_MASK LDBL_DECIMAL_DIG LDBL_DIG LDBL_EPSILON LDBL_HAS_SUBNORM LDBL_MANT_DIG LDBL_MAX LDBL_MAX_10_EXP
    LDBL_MAX_EXP LDBL_MIN LDBL_MIN_10_EXP LDBL_MIN_EXP LDBL_TRUE_MIN LINE_MAX LITTLE_ENDIAN LLONG_MAX LLONG_MIN
    LOGIN_NAME_MAX LONG_MAX LONG_MIN L_ctermid L_tmpnam MATH_ERREXCEPT MATH_ERRNO MAX_CANON MAX_INPUT MB_CUR_MAX
    MB_LEN_MAX MINSIGSTKSZ MQ_PRIO_MAX M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2 M_LOG10E M_LOG2E M_PI M_PI_2
    M_PI_4 M_SQRT1_2 M_SQRT2 NAME_MAX NAN NFDBITS NGREG NGROUPS_MAX NSIG NULL ONCE_FLAG_INIT PATH_MAX PDP_ENDIAN
    PIPE_BUF POLL_ERR POLL_HUP POLL_IN POLL_MSG POLL_OUT POLL_PRI PRIX16 PRIX32 PRIX64 PRIX8 PRIXFAST16
    PRIXFAST32 PRIXFAST64 PRIXFAST8 PRIXLEAST16 PRIXLEAST32 PRIXLEAST64 PRIXLEAST8 PRIXMAX PRIXPTR PRId16 PRId32
    PRId64 PRId8 PRIdFAST16 PRIdFAST32 PRIdFAST64 PRIdFAST8 PRIdLEAST16 PRIdLEAST32 PRIdLEAST64 PRIdLEAST8
    PRIdMAX PRIdPTR PRIi16 PRIi32 PRIi64 PRIi8 PRIiFAST16 PRIiFAST32 PRIiFAST64 PRIiFAST8 PRIiLEAST16
    PRIiLEAST32 PRIiLEAST64 PRIiLEAST8 PRIiMAX PRIiPTR PRIo16 PRIo32 PRIo64 PRIo8 PRIoFAST16 PRIoFAST32
    PRIoFAST64 PRIoFAST8 PRIoLEAST16 PRIoLEAST32 PRIoLEAST64 PRIoLEAST8 PRIoMAX PRIoPTR PRIu16 PRIu32 PRIu64
    PRIu8 PRIuFAST16 PRIuFAST32 PRIuFAST64 PRIuFAST8 PRIuLEAST16 PRIuLEAST32 PRIuLEAST64 PRIuLEAST8 PRIuMAX
    PRIuPTR PRIx16 PRIx32 PRIx64 PRIx8 PRIxFAST16 PRIxFAST32 PRIxFAST64 PRIxFAST8 PRIxLEAST16 PRIxLEAST32
    PRIxLEAST64 PRIxLEAST8 PRIxMAX PRIxPTR PTHREAD_DESTRUCTOR_ITERATIONS PTHREAD_KEYS_MAX PTHREAD_STACK_MIN
    PTRDIFF_MAX PTRDIFF_MIN P_tmpdir RAND_MAX RE_DUP_MAX RTSIG_MAX SA_INTERRUPT SA_NOCLDSTOP SA_NOCLDWAIT
    SA_NODEFER SA_NOMASK SA_ONESHOT SA_ONSTACK SA_RESETHAND SA_RESTART SA_SIGINFO SA_STACK SCHAR_MAX SCHAR_MIN
    SCNd16 SCNd32 SCNd64 SCNd8 SCNdFAST16 SCNdFAST32 SCNdFAST64 SCNdFAST8 SCNdLEAST16 SCNdLEAST32 SCNdLEAST64
    SCNdLEAST8 SCNdMAX SCNdPTR SCNi16 SCNi32 SCNi64 SCNi8 SCNiFAST16 SCNiFAST32 SCNiFAST64 SCNiFAST8 SCNiLEAST16
    SCNiLEAST32 SCNiLEAST64 SCNiLEAST8 SCNiMAX SCNiPTR SCNo16 SCNo32 SCNo64 SCNo8 SCNoFAST16 SCNoFAST32
    SCNoFAST64 SCNoFAST8 SCNoLEAST16 SCNoLEAST32 SCNoLEAST64 SCNoLEAST8 SCNoMAX SCNoPTR SCNu16 SCNu32 SCNu64
    SCNu8 SCNuFAST16 SCNuFAST32 SCNuFAST64 SCNuFAST8 SCNuLEAST16 SCNuLEAST32 SCNuLEAST64 SCNuLEAST8 SCNuMAX
    SCNuPTR SCNx16 SCNx32 SCNx64 SCNx8 SCNxFAST16 SCNxFAST32 SCNxFAST64 SCNxFAST8 SCNxLEAST16 SCNxLEAST32
    SCNxLEAST64 SCNxLEAST8 SCNxMAX SCNxPTR SEEK_CUR SEEK_END SEEK_SET SEGV_ACCADI SEGV_ACCERR SEGV_ADIDERR
    SEGV_ADIPERR SEGV_BNDERR SEGV_MAPERR SEGV_MTEAERR SEGV_MTESERR SEGV_PKUERR SEM_VALUE_MAX SHRT_MAX SHRT_MIN
    SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGEV_NONE SIGEV_SIGNAL SIGEV_THREAD SIGEV_THREAD_ID SIGFPE
    SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV
    SIGSTKFLT SIGSTKSZ SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM
    SIGWINCH SIGXCPU SIGXFSZ SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_BLOCK SIG_DFL SIG_ERR SIG_IGN SIG_SETMASK
    SIG_UNBLOCK SIZE_MAX SI_ASYNCIO SI_ASYNCNL SI_DETHREAD SI_KERNEL SI_MESGQ SI_QUEUE SI_SIGIO SI_TIMER
    SI_TKILL SI_USER SSIZE_MAX SS_DISABLE SS_ONSTACK TIMER_ABSTIME TIME_UTC TMP_MAX TSS_DTOR_ITERATIONS
    TTY_NAME_MAX UCHAR_MAX UINT16_MAX UINT32_MAX UINT64_MAX UINT8_MAX UINTMAX_MAX UINTPTR_MAX UINT_FAST16_MAX
    UINT_FAST32_MAX UINT_FAST64_MAX UINT_FAST8_MAX UINT_LEAST16_MAX UINT_LEAST32_MAX UINT_LEAST64_MAX
    UINT_LEAST8_MAX UINT_MAX ULLONG_MAX ULONG_MAX USHRT_MAX WCHAR_MAX WCHAR_MIN WCONTINUED WEOF WEXITED WINT_MAX
    WINT_MIN WNOHANG WNOWAIT WSTOPPED WUNTRACED XATTR_LIST_MAX XATTR_NAME_MAX XATTR_SIZE_MAX complex errno linux
    math_errhandling noreturn sa_handler sa_sigaction si_addr si_addr_lsb si_arch si_band si_call_addr si_fd
    si_int si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper
    si_utime si_value sigev_notify_attributes sigev_notify_function stderr stdin stdout unix
"""

_NAMES = """
    ATOMIC_VAR_INIT CMPLX CMPLXF CMPLXL FD_CLR FD_ISSET FD_SET FD_ZERO FILE INT16_C INT32_C INT64_C INT8_C
    INTMAX_C UINT16_C UINT32_C UINT64_C UINT8_C UINTMAX_C WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED
    WIFSTOPPED WSTOPSIG WTERMSIG a64l abort abs acos acosf acosh acoshf acoshl acosl aligned_alloc alloca
    arc4random arc4random_buf arc4random_uniform asctime asctime_r asin asinf asinh asinhf asinhl asinl assert
    at_quick_exit atan atan2 atan2f atan2l atanf atanh atanhf atanhl atanl atexit atof atoi atol atoll
    atomic_bool atomic_char atomic_char16_t atomic_char32_t atomic_compare_exchange_strong
    atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak atomic_compare_exchange_weak_explicit
    atomic_exchange atomic_exchange_explicit atomic_fetch_add atomic_fetch_add_explicit atomic_fetch_and
    atomic_fetch_and_explicit atomic_fetch_or atomic_fetch_or_explicit atomic_fetch_sub
    atomic_fetch_sub_explicit atomic_fetch_xor atomic_fetch_xor_explicit atomic_flag atomic_flag_clear
    atomic_flag_clear_explicit atomic_flag_test_and_set atomic_flag_test_and_set_explicit atomic_init atomic_int
    atomic_int_fast16_t atomic_int_fast32_t atomic_int_fast64_t atomic_int_fast8_t atomic_int_least16_t
    atomic_int_least32_t atomic_int_least64_t atomic_int_least8_t atomic_intmax_t atomic_intptr_t
    atomic_is_lock_free atomic_llong atomic_load atomic_load_explicit atomic_long atomic_ptrdiff_t atomic_schar
    atomic_short atomic_signal_fence atomic_size_t atomic_store atomic_store_explicit atomic_thread_fence
    atomic_uchar atomic_uint atomic_uint_fast16_t atomic_uint_fast32_t atomic_uint_fast64_t atomic_uint_fast8_t
    atomic_uint_least16_t atomic_uint_least32_t atomic_uint_least64_t atomic_uint_least8_t atomic_uintmax_t
    atomic_uintptr_t atomic_ullong atomic_ulong atomic_ushort atomic_wchar_t bcmp bcopy be16toh be32toh be64toh
    blkcnt_t blksize_t bsearch btowc bzero c16rtomb c32rtomb cabs cabsf cabsl cacos cacosf cacosh cacoshf
    cacoshl cacosl caddr_t call_once calloc carg cargf cargl casin casinf casinh casinhf casinhl casinl catan
    catanf catanh catanhf catanhl catanl cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl ccosl ceil ceilf ceill
    cexp cexpf cexpl cimag cimagf cimagl clearenv clearerr clearerr_unlocked clock clock_getcpuclockid
    clock_getres clock_gettime clock_nanosleep clock_settime clock_t clockid_t clog clogf clogl cnd_broadcast
    cnd_destroy cnd_init cnd_signal cnd_t cnd_timedwait cnd_wait conj conjf conjl copysign copysignf copysignl
    cos cosf cosh coshf coshl cosl cpow cpowf cpowl cproj cprojf cprojl creal crealf creall csin csinf csinh
    csinhf csinhl csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl ctermid ctime ctime_r daddr_t
    daylight dev_t difftime div div_t double_t dprintf drand48 drand48_r drem dremf dreml duplocale dysize ecvt
    ecvt_r erand48 erand48_r erf erfc erfcf erfcl erff erfl exit exp exp2 exp2f exp2l expf expl explicit_bzero
    expm1 expm1f expm1l fabs fabsf fabsl fclose fcvt fcvt_r fd_mask fd_set fdim fdimf fdiml fdopen feclearexcept
    fegetenv fegetexceptflag fegetround feholdexcept fenv_t feof feof_unlocked feraiseexcept ferror
    ferror_unlocked fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fexcept_t fflush
    fflush_unlocked ffs ffsl ffsll fgetc fgetc_unlocked fgetpos fgets fgetwc fgetws fileno fileno_unlocked
    finite finitef finitel float_t flockfile floor floorf floorl fma fmaf fmal fmax fmaxf fmaxl fmemopen fmin
    fminf fminl fmod fmodf fmodl fopen fpclassify fpos_t fpregset_t fprintf fputc fputc_unlocked fputs fputwc
    fputws fread fread_unlocked free freelocale freopen frexp frexpf frexpl fsblkcnt_t fscanf fseek fseeko
    fsetpos fsfilcnt_t fsid_t ftell ftello ftrylockfile funlockfile fwide fwprintf fwrite fwrite_unlocked
    fwscanf gamma gammaf gammal gcvt getc getc_unlocked getchar getchar_unlocked getdelim getenv getline
    getloadavg getsubopt getw getwc getwchar gid_t gmtime gmtime_r greg_t gregset_t gsignal htobe16 htobe32
    htobe64 htole16 htole32 htole64 hypot hypotf hypotl id_t ilogb ilogbf ilogbl imaxabs imaxdiv imaxdiv_t index
    initstate initstate_r ino_t int16_t int32_t int64_t int8_t int_fast16_t int_fast32_t int_fast64_t
    int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t intmax_t intptr_t isalnum isalnum_l
    isalpha isalpha_l isascii isascii_l isblank isblank_l iscntrl iscntrl_l isdigit isdigit_l isfinite isgraph
    isgraph_l isgreater isgreaterequal isinf isinff isinfl isless islessequal islessgreater islower islower_l
    isnan isnanf isnanl isnormal isprint isprint_l ispunct ispunct_l isspace isspace_l isunordered isupper
    isupper_l iswalnum iswalnum_l iswalpha iswalpha_l iswblank iswblank_l iswcntrl iswcntrl_l iswctype
    iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l iswlower iswlower_l iswprint iswprint_l iswpunct
    iswpunct_l iswspace iswspace_l iswupper iswupper_l iswxdigit iswxdigit_l isxdigit isxdigit_l j0 j0f j0l j1
    j1f j1l jmp_buf jn jnf jnl jrand48 jrand48_r key_t kill kill_dependency killpg l64a labs lcong48 lcong48_r
    ldexp ldexpf ldexpl ldiv ldiv_t le16toh le32toh le64toh lgamma lgamma_r lgammaf lgammaf_r lgammal lgammal_r
    llabs lldiv lldiv_t llrint llrintf llrintl llround llroundf llroundl locale_t localeconv localtime
    localtime_r loff_t log log10 log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl
    longjmp lrand48 lrand48_r lrint lrintf lrintl lround lroundf lroundl malloc max_align_t mblen mbrlen
    mbrtoc16 mbrtoc32 mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstate_t mbstowcs mbtowc mcontext_t memccpy memchr
    memcmp memcpy memmove memory_order memory_order_acq_rel memory_order_acquire memory_order_consume
    memory_order_relaxed memory_order_release memory_order_seq_cst memset mkdtemp mkstemp mkstemps mktemp mktime
    mode_t modf modff modfl mrand48 mrand48_r mtx_destroy mtx_init mtx_lock mtx_plain mtx_recursive mtx_t
    mtx_timed mtx_timedlock mtx_trylock mtx_unlock nan nanf nanl nanosleep nearbyint nearbyintf nearbyintl
    newlocale nextafter nextafterf nextafterl nexttoward nexttowardf nexttowardl nlink_t nrand48 nrand48_r off_t
    offsetof on_exit once_flag open_memstream open_wmemstream pclose perror pid_t popen posix_memalign pow powf
    powl printf pselect psiginfo psignal pthread_attr_t pthread_barrier_t pthread_barrierattr_t pthread_cond_t
    pthread_condattr_t pthread_key_t pthread_kill pthread_mutex_t pthread_mutexattr_t pthread_once_t
    pthread_rwlock_t pthread_rwlockattr_t pthread_sigmask pthread_spinlock_t pthread_t ptrdiff_t putc
    putc_unlocked putchar putchar_unlocked putenv puts putw putwc putwchar qecvt qecvt_r qfcvt qfcvt_r qgcvt
    qsort quad_t quick_exit raise rand rand_r random random_r realloc reallocarray realpath register_t remainder
    remainderf remainderl remove remquo remquof remquol rename renameat rewind rindex rint rintf rintl round
    roundf roundl rpmatch scalb scalbf scalbl scalbln scalblnf scalblnl scalbn scalbnf scalbnl scanf seed48
    seed48_r select setbuf setbuffer setenv setjmp setlinebuf setlocale setstate setstate_r setvbuf sig_atomic_t
    sig_t sigaction sigaddset sigaltstack sigblock sigdelset sigemptyset sigevent_t sigfillset siggetmask
    siginfo_t siginterrupt sigismember sigjmp_buf siglongjmp sigmask signal signbit signgam significand
    significandf significandl sigpending sigprocmask sigqueue sigreturn sigset_t sigsetjmp sigsetmask sigstack
    sigsuspend sigtimedwait sigval sigval_t sigwait sigwaitinfo sin sinf sinh sinhf sinhl sinl size_t snprintf
    sprintf sqrt sqrtf sqrtl srand srand48 srand48_r srandom srandom_r sscanf ssignal ssize_t stack_t stpcpy
    stpncpy strcasecmp strcasecmp_l strcat strchr strcmp strcoll strcoll_l strcpy strcspn strdup strerror
    strerror_l strerror_r strftime strftime_l strlen strncasecmp strncasecmp_l strncat strncmp strncpy strndup
    strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtoimax strtok strtok_r strtol
    strtold strtoll strtoq strtoul strtoull strtoumax strtouq strxfrm strxfrm_l suseconds_t swprintf swscanf
    system tan tanf tanh tanhf tanhl tanl tempnam tgamma tgammaf tgammal thrd_busy thrd_create thrd_current
    thrd_detach thrd_equal thrd_error thrd_exit thrd_join thrd_nomem thrd_sleep thrd_start_t thrd_success thrd_t
    thrd_timedout thrd_yield time time_t timegm timelocal timer_create timer_delete timer_getoverrun
    timer_gettime timer_settime timer_t timespec_get timezone tmpfile tmpnam tmpnam_r toascii toascii_l tolower
    tolower_l toupper toupper_l towctrans towctrans_l towlower towlower_l towupper towupper_l trunc truncf
    truncl tss_create tss_delete tss_dtor_t tss_get tss_set tss_t tzname tzset u_char u_int u_int16_t u_int32_t
    u_int64_t u_int8_t u_long u_quad_t u_short uid_t uint uint16_t uint32_t uint64_t uint8_t uint_fast16_t
    uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t
    uintmax_t uintptr_t ulong ungetc ungetwc unsetenv uselocale ushort va_arg va_copy va_end va_list va_start
    valloc vdprintf vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf vswprintf
    vswscanf vwprintf vwscanf wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcscmp wcscoll
    wcscoll_l wcscpy wcscspn wcsdup wcsftime wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen
    wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold wcstoll
    wcstombs wcstoul wcstoull wcstoumax wcsxfrm wcsxfrm_l wctob wctomb wctrans wctrans_l wctrans_t wctype
    wctype_l wctype_t wint_t wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf y0 y0f y0l y1 y1f y1l yn
    ynf ynl
"""

KEYWORDS = frozenset(_KEYWORDS.split())
# Macros without arguments: a parameter or field of this name is another thing where the header comes first.
MACROS = frozenset(_MACROS.split())
# Functions, types, enumerators, and macros that look like functions.
NAMES = frozenset(_NAMES.split())
