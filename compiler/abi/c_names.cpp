#include "compiler/abi/c_names.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <sstream>

#include "compiler/tile/arguments.h"
#include "support/text/error.h"

namespace tessera {

using Words = std::set<std::string>;

static Words words_of(const char *text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

// The keywords of C up to C23 and C++ up to C++26, with alternative tokens, and those that gcc, clang and older dialects add.
static const Words &keywords() {
    static const Words words = words_of(R"(
        alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return
        co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert decltype default delete do double
        dynamic_cast else enum explicit export extern false float for fortran friend goto if inline int long mutable namespace new
        noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return
        short signed sizeof static static_assert static_cast struct switch synchronized template this thread_local throw true try
        typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
        _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn
        _Static_assert _Thread_local)");
    return words;
}

// Macros and variables in small letters: of the C library and of POSIX, of compilers that predefine the name of a machine, and of
// the headers of Windows and of vector extensions.
static const Words &small_macros() {
    static const Words words = words_of(R"(
        complex imaginary noreturn math_errhandling errno stdin stdout stderr unreachable
        linux unix i386 vax sun sparc mips hpux hppa m68k mc68000 mc68010 mc68020 sgi ns32000 pyr sequent tahoe xenix msdos i860 i960
        sel gould
        near far huge small interface pascal cdecl vector pixel
        d_fileno environ h_addr h_errno s6_addr s6_addr16 s6_addr32 s_addr s_host s_imp s_impno s_lh s_net sa_handler sa_sigaction
        sched_priority si_addr si_addr_lsb si_arch si_band si_call_addr si_errno si_fd si_int si_lower si_overrun si_pid si_pkey si_ptr
        si_signo si_status si_stime si_syscall si_timerid si_uid si_upper si_utime si_value sigev_notify_attributes sigev_notify_function
        sigev_notify_thread_id signgam daylight st_atime st_atimensec st_birthtime st_ctime st_ctimensec st_mtime st_mtimensec timezone
        tzname ru_first ru_last w_coredump w_retcode w_stopsig w_stopval w_termsig)");
    return words;
}

// For doubles; those for float and long double end in f and l.
static const Words &mathematics() {
    static const Words words = words_of(R"(
        acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt ccos ccosh ceil cexp cimag clog conj
        copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh drem erf erfc exp exp10 exp2 expm1 fabs fdim finite floor fma fmax
        fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
        nearbyint nextafter nextdown nexttoward nextup pow remainder remquo rint round roundeven scalb scalbln scalbn significand sin
        sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn)");
    return words;
}

// Functions and macros like functions.
static const Words &library() {
    static const Words words = words_of(R"(
        abort abs aligned_alloc alloca asctime assert at_quick_exit atexit atof atoi atol atoll bsearch btowc c16rtomb c32rtomb c8rtomb
        call_once calloc clearerr clock cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait ctime difftime div exit fclose
        feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof feraiseexcept ferror fesetenv fesetexceptflag fesetround
        fetestexcept feupdateenv fflush fgetc fgetpos fgets fgetwc fgetws fopen fpclassify fprintf fputc fputs fputwc fputws fread free
        free_aligned_sized free_sized freopen fscanf fseek fsetpos ftell fwide fwprintf fwrite fwscanf getc getchar getenv gets getwc
        getwchar gmtime imaxabs imaxdiv isalnum isalpha isblank iscanonical iscntrl isdigit iseqsig isfinite isgraph isgreater
        isgreaterequal isless islessequal islessgreater islower isnormal isprint ispunct issignaling isspace issubnormal isunordered
        isupper iswalnum iswalpha iswblank iswcntrl iswctype iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit
        isxdigit iszero kill_dependency labs ldiv llabs lldiv localeconv localtime longjmp malloc mblen mbrlen mbrtoc16 mbrtoc32 mbrtoc8
        mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memalignment memccpy memchr memcmp memcpy memmove memset memset_explicit mktime
        mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock mtx_unlock offsetof perror printf putc putchar puts putwc putwchar qsort
        quick_exit raise rand realloc remove rename rewind scanf setbuf setjmp setlocale setvbuf signal signbit snprintf sprintf srand
        sscanf strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfromd strfromf strfroml strftime strlen strncat strncmp
        strncpy strndup strpbrk strrchr strspn strstr strtod strtof strtoimax strtok strtol strtold strtoll strtoul strtoull strtoumax
        strxfrm swprintf swscanf system thrd_create thrd_current thrd_detach thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time
        timespec_get timespec_getres tmpfile tmpnam tolower toupper towctrans towlower towupper tss_create tss_delete tss_get tss_set
        ungetc ungetwc va_arg va_copy va_end va_start vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf
        vswprintf vswscanf vwprintf vwscanf wcrtomb wcscat wcschr wcscmp wcscoll wcscpy wcscspn wcsftime wcslen wcsncat wcsncmp wcsncpy
        wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull
        wcstoumax wcsxfrm wctob wctomb wctrans wctype wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf
        accept access bind brk bcopy bcmp bzero chdir chmod close connect creat dlclose dlerror dlopen dlsym dup dup2 execv execve
        fcntl fileno fork fstat ftruncate getline getpid gettimeofday index ioctl kill link listen lseek lstat memalign mkdir mmap mprotect
        munmap nanosleep open pause pipe poll pread pwrite random read readlink recv rindex rmdir sbrk select send setenv sigaction
        sigaddset sigemptyset sigfillset sigprocmask sleep socket srandom stat syscall sysconf times umask uname unlink usleep valloc vfork
        wait waitpid write)");
    return words;
}

static const Words &capital_names() {
    static const Words words = words_of(R"(
        BUFSIZ CLOCKS_PER_SEC CMPLX CMPLXF CMPLXL DECIMAL_DIG DIR EOF FILE FILENAME_MAX FP_CONTRACT HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY
        L_tmpnam MB_CUR_MAX NAN NDEBUG NULL ONCE_FLAG_INIT STDC TRUE FALSE TSS_DTOR_ITERATIONS WEOF)");
    return words;
}

static const Words &types() {
    static const Words words = words_of(R"(
        blkcnt_t blksize_t caddr_t char8_t clock_t clockid_t cnd_t cpu_set_t dev_t div_t fd_set fenv_t fexcept_t float_t double_t fpos_t
        gid_t id_t imaxdiv_t ino_t jmp_buf key_t lconv ldiv_t lldiv_t loff_t max_align_t mbstate_t memory_order mode_t mtx_t nlink_t
        nullptr_t off_t once_flag pid_t ptrdiff_t register_t rsize_t sig_t sig_atomic_t sigset_t size_t ssize_t suseconds_t thrd_start_t
        thrd_t time_t timer_t timespec tm tss_dtor_t tss_t u_char u_int u_long u_short uid_t uint ulong useconds_t ushort va_list wctrans_t
        wctype_t wint_t)");
    return words;
}

static bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)); }
static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// As C reserves them for macros that its headers may add: FE_…, E and a capital or a digit, INT…_MAX.
static bool is_of_a_family_of_macros(const std::string &name) {
    for (const char *start :
         {"ATOMIC_", "DBL_", "EXIT_", "FE_", "FLT_", "FP_", "LC_", "LDBL_", "MATH_", "MB_", "PRI", "SCN", "SEEK_", "SIG_", "TIME_"})
        if (name.starts_with(start)) return true;
    if (name.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos) return false;
    if ((name.starts_with("E") && name.size() > 1) || name.starts_with("SIG")) return true;
    for (const char *end : {"_MAX", "_MIN", "_BIT", "_C", "_WIDTH"})
        if (name.ends_with(end)) return true;
    return false;
}

static bool is_in_mathematics(const std::string &name) {
    if (mathematics().count(name)) return true;
    return (name.ends_with("f") || name.ends_with("l")) && mathematics().count(name.substr(0, name.size() - 1));
}

// Whose a name is that a kernel cannot have; "" if it is free.
static std::string owner(const std::string &name) {
    if (name.starts_with("_") || name.find("__") != std::string::npos)
        return "reserved by C and C++, since it begins with '_' or has two of them in a row";
    if (name.starts_with("tess_") || name.starts_with("TESS_") || name.starts_with("Tess"))
        return "reserved for Tessera's runtime, as is all that begins with tess_, TESS_ or Tess";
    if (name == "main") return "where a program begins";
    const bool integer = name.ends_with("_t") && (name.starts_with("int") || name.starts_with("uint") || name.starts_with("u_int"));
    if (types().count(name) || integer) return "a type of the C library's";
    if (small_macros().count(name)) return "a macro or variable of common headers and compilers";
    for (const char *start : {"atomic_", "posix_", "pthread_", "sched_"})
        if (name.starts_with(start)) return "reserved for the C library, as is all that begins with " + std::string(start);
    if (library().count(name) || is_in_mathematics(name)) return "a function of the C library's";
    if (capital_names().count(name) || is_of_a_family_of_macros(name)) return "a macro of the C library's, or reserved for one";
    for (const char *start : {"cl", "cu"})
        if (name.starts_with(start) && name.size() > 2 && is_capital(name[2])) return "reserved for OpenCL and CUDA";
    return "";
}

bool is_c_name(const std::string &name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
    for (char c : name)
        if (!is_letter_or_digit(c) && c != '_') return false;
    return !keywords().count(name);
}

bool may_be_in_headers(const std::string &name) {
    if (name.ends_with("_t") || name.starts_with("atomic_")) return true;
    if (small_macros().count(name) || types().count(name) || capital_names().count(name)) return true;
    return name.size() > 3 && name.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

static constexpr size_t longest_name = 200;

void refuse_c_name(const std::string &name, const std::string &whose) {
    throw UserError("emit.name", "a kernel's name must be one that nothing else has, got '" + name + "', which is " + whose +
                                     "; give another one with --name.");
}

void check_c_name(const std::string &name) {
    if (name.size() > longest_name)
        throw UserError("emit.name", "a kernel's name must have at most " + std::to_string(longest_name) +
                                         " characters, since files are named after it; '" + name.substr(0, 20) + "…' has " +
                                         std::to_string(name.size()) + ". Give another one with --name.");
    if (!is_c_name(name))
        throw UserError("emit.name", "a kernel's name must be a C identifier (letters, digits and _, not a keyword), got '" + name +
                                         "'; give another one with --name.");
    if (const std::string whose = owner(name); !whose.empty()) refuse_c_name(name, whose);
}

static std::string without_dots(const std::string &name) {
    std::string out;
    for (char c : name) out += is_letter_or_digit(c) ? c : '_';
    return out;
}

static bool ends_in_one_of(const std::string &name, const std::vector<const char *> &ends) {
    return std::any_of(ends.begin(), ends.end(), [&](const char *end) { return name.ends_with(end); });
}

// Checks the names of what a file of C has for each kernel, and of its public functions.
static const std::vector<const char *> own_ends = {"_spec", "_plan", "_body"},
                                       public_ends = {"_size", "_workspace", "_table", "_describe", "_parameters", "_argument_names"};

// What the public functions call their other arguments.
static bool is_ours(const std::string &name) {
    for (const char *own : {"context", "bytes", "parameters", "tensors", "kernel"})
        if (name == own) return true;
    return false;
}

// Macros and types of headers begin with a capital or an underscore, are known, or end in _t. The rest is what a generated file uses
// beside its arguments.
static bool is_plain(const std::string &name) {
    if (!is_c_name(name) || !std::islower(static_cast<unsigned char>(name[0])) || name.find("__") != std::string::npos) return false;
    if (may_be_in_headers(name) || name.starts_with("tess") || is_ours(name)) return false;
    return !ends_in_one_of(name, own_ends) && name.find("_bits_of_") == std::string::npos;
}

// "arg_" in front, no two underscores in a row, and no end that a kernel's own tables and functions have.
static std::string marked(const std::string &name) {
    std::string out = "arg_";
    for (char c : name)
        if (c != '_' || out.back() != '_') out += c;
    return ends_in_one_of(out, own_ends) ? out + "_" : out;
}

std::vector<std::string> c_argument_names(const TileProgram &program) {
    std::vector<std::string> names;
    for (const Argument &a : program.arguments) names.push_back(a.tensor.name);
    for (const Parameter &q : program.parameters) names.push_back(q.name);
    Words taken;
    for (const std::string &name : names)
        if (is_plain(name)) taken.insert(name);
    for (std::string &name : names) {
        if (is_plain(name)) continue;
        const std::string plain = without_dots(name), base = is_plain(plain) ? plain : marked(plain);
        name = base;
        for (int n = 2; !taken.insert(name).second; n++) name = base + (base.back() == '_' ? "" : "_") + std::to_string(n);
    }
    return names;
}

// A packing function's own functions and tables end in these words, so an operand's name does not.
std::string c_packing_suffix(const std::string &operand) {
    const std::string name = without_dots(operand);
    const bool free = !name.starts_with("_") && !name.starts_with("arg_") && name.find("__") == std::string::npos &&
                      !ends_in_one_of(name, own_ends) && !ends_in_one_of(name, public_ends);
    return "_pack_" + (free ? name : marked(name));
}

bool has_named_tensors(const TileProgram &program) {
    constexpr size_t most = 16;
    return program.arguments.size() <= most;
}

std::vector<std::string> public_functions(const std::string &name, const TileProgram &program) {
    std::vector<std::string> all = {name + "_table", name + "_workspace", name + "_describe"};
    if (has_named_tensors(program)) all.push_back(name);
    if (is_packing(program)) all.push_back(name + "_size");
    return all;
}

const char *c_parameter_type(DType type) {
    switch (held_as(type)) {
    case Held::f32: return "float";
    case Held::f64: return "double";
    case Held::i32: return "int32_t";
    case Held::i64: return "int64_t";
    case Held::truth: return "uint8_t";
    case Held::half:
    case Held::i8:
    case Held::u8:
    case Held::position: break;
    }
    throw InternalError("a parameter has an arithmetic type");
}

}  // namespace tessera
