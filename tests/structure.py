"""The structure of the checkout is what CMake and the READMEs say. Run with the checkout's root; prints what is not so, a line each.

cycle      Two stems include each other, directly or in a ring. A stem is the header and the source of one name.
room       A file includes a header of a room that its own room does not link. Links are those of tessera_room; they are transitive.
unlisted   A source file is in no list of CMake's, and no test beside it names it, so nothing compiles it.
calls      Sources of the C library call each other in a ring, or a room calls one that it does not link.
line       A line of C or C++ has more than 140 columns.
readme     A README of a folder or of a room has more than 100 lines; that of the checkout has more than 110.
comment    A comment begins with "Of ", which leaves open what of it is meant.
subject    The subject of a commit since FIRST_SUBJECT has more than 72 characters. Not asked where the history is not there.
"""
import os
import re
import subprocess
import sys

PRODUCT = ["runtime", "support", "algorithms", "schedules", "compiler", "bench", "costmodel", "autotune", "generators", "python"]
OTHERS = ["tests", "examples"]
DATA = "tests/golden"  # what emitters write
MAX_COLUMNS = 140
MAX_README_LINES = 100
MAX_ROOT_README_LINES = 110
FIRST_SUBJECT = "e9880fb4"  # commits after this one
MAX_SUBJECT = 72


def files_below(root, folder):
    for path, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build-", "_")))  # a room may be called build
        for name in sorted(names):
            yield os.path.relpath(os.path.join(path, name), root)


def text_of(root, file):
    with open(os.path.join(root, file), encoding="utf-8") as stream:
        return stream.read()


def is_code(file):
    return file.endswith((".h", ".c", ".cpp"))


def includes_of(root, file, headers):
    """The checkout's own headers that a file includes, by their path from the root, each with its line."""
    for number, line in enumerate(text_of(root, file).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        for candidate in (match[1], os.path.normpath(os.path.join(os.path.dirname(file), match[1])), "runtime/abi/" + match[1]):
            if candidate in headers:
                yield number, candidate
                break


def stem_of(file):
    return os.path.splitext(file)[0]


# ---- cycles between stems

def rings(edges):
    """One shortest ring for each set of stems that reach each other, as a list of stems."""
    found = []
    seen = set()
    for start in sorted(edges):
        if start in seen:
            continue
        before = {start: None}
        queue = [start]
        end = None
        while queue and end is None:
            stem = queue.pop(0)
            for following in sorted(edges.get(stem, {})):
                if following == start:
                    end = stem
                    break
                if following not in before:
                    before[following] = stem
                    queue.append(following)
        if end is None:
            continue
        ring = []
        while end is not None:
            ring.append(end)
            end = before[end]
        ring.reverse()
        if not seen.intersection(ring):
            found.append(ring)
        seen.update(ring)
    return found


def cycles(root, code, headers):
    edges = {}
    for file in code:
        for number, header in includes_of(root, file, headers):
            if stem_of(header) != stem_of(file):
                edges.setdefault(stem_of(file), {}).setdefault(stem_of(header), f"{file}:{number}")
    for ring in rings(edges):
        steps = [f"    {edges[a][b]} includes {b}.h" for a, b in zip(ring, ring[1:] + ring[:1])]
        yield "cycle: " + " -> ".join(ring + ring[:1]) + "\n" + "\n".join(steps)


# ---- rooms and what they link

def calls(text, function):
    """The arguments of each call of a CMake function, without comments and quotes."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in re.finditer(rf"\b{function}\s*\(([^()]*)\)", text):
        yield match[1].replace('"', " ").split()


def rooms_of(root, lists):
    """What each room links, by its path, and the sources that lists name, by their path from the root."""
    links = {}
    sources = set()
    for file in lists:
        for arguments in calls(text_of(root, file), "tessera_room"):
            if arguments[0].startswith("path"):
                continue
            path, kind = arguments[0], None
            links[path] = []
            for word in arguments[1:]:
                if word in ("SOURCES", "LIBS", "PRIVATE_LIBS"):
                    kind = word
                elif kind == "SOURCES":
                    sources.add(os.path.normpath(os.path.join(path, word)))
                elif kind == "LIBS":
                    links[path].append(word)
    return links, sources


def reached(links, room):
    seen = set()
    open_rooms = [room]
    while open_rooms:
        path = open_rooms.pop()
        if path in seen or path not in links:
            continue
        seen.add(path)
        open_rooms += links[path]
    return seen


def unlinked(root, code, headers, links, sources):
    for file in code:
        room = os.path.dirname(file)
        if room not in links or (not file.endswith(".h") and file not in sources):
            continue  # a program of a folder, which links what its list says
        allowed = reached(links, room)
        for number, header in includes_of(root, file, headers):
            if os.path.dirname(header) not in allowed:
                yield (f"room: {file}:{number} includes {header}, but the room {room} links {', '.join(links[room]) or 'no room'}. "
                       f"Link {os.path.dirname(header)} in CMake, or move what is needed below both")


# ---- calls between sources of C, which headers do not show

def ring_of_calls(root, code, links):
    text = {f: re.sub(r"/\*.*?\*/", "", text_of(root, f), flags=re.S) for f in code if f.endswith(".c") and os.path.dirname(f) in links}
    defined = {}
    for file, body in text.items():
        for name in re.findall(r"^[a-z][^\n;={}()]*\b(tess_\w+)\([^;{}]*\) \{", body, flags=re.M):
            defined.setdefault(name, file)
    edges = {}
    for file, body in text.items():
        for name in sorted(set(re.findall(r"\btess_\w+(?=\()", body))):
            owner = defined.get(name, file)
            if owner == file:
                continue
            edges.setdefault(file, {}).setdefault(owner, name)
            if os.path.dirname(owner) not in reached(links, os.path.dirname(file)):
                yield f"calls: {file} calls {name} of {owner}, whose room {os.path.dirname(file)} does not link"
    for ring in rings(edges):
        steps = [f"    {a} calls {edges[a][b]}" for a, b in zip(ring, ring[1:] + ring[:1])]
        yield "calls: " + " -> ".join(ring + ring[:1]) + "\n" + "\n".join(steps)


# ---- lists of sources

def unlisted(root, sources_of_code, lists, sources):
    named = set(sources)
    for file in sources_of_code:  # what a test compiles while it runs
        if file.startswith("tests/"):
            folder = os.path.dirname(file)
            named.update(os.path.join(folder, name) for name in re.findall(r"[\w.]+\.c(?:pp)?\b", text_of(root, file)))
    for file in lists:
        folder = os.path.dirname(file)
        for word in re.split(r'[\s()";=]+', re.sub(r"#[^\n]*", "", text_of(root, file))):
            word = re.sub(r"^.*\}/", "", word)
            for name in (word, word + ".cpp"):
                named.add(os.path.normpath(name))
                named.add(os.path.normpath(os.path.join(folder, name)))
    for file in sources_of_code:
        if file not in named:
            yield f"unlisted: {file} is in no list of CMake's, so nothing compiles it. Name it beside its neighbours, or remove it"


# ---- lines and pages

def long_lines(root, files):
    for file in files:
        for number, line in enumerate(text_of(root, file).splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                yield f"line: {file}:{number} has {len(line)} columns; expected at most {MAX_COLUMNS}"


def long_readmes(root, files):
    for file in files:
        count = len(text_of(root, file).splitlines())
        most = MAX_README_LINES if os.path.dirname(file) else MAX_ROOT_README_LINES
        if os.path.basename(file) == "README.md" and count > most:
            yield f"readme: {file} has {count} lines; expected at most {most}. Move decisions to DECISIONS.md beside it"


# ---- words

def dangling_comments(root, files):
    for file in files:
        for number, line in enumerate(text_of(root, file).splitlines(), 1):
            if re.search(r"(?:^|\s)(?://+|/\*+|#) Of ", line):
                yield f'comment: {file}:{number} begins with "Of ". Name what is meant: "The hash of …", "For a scan …"'


def long_subjects(root):
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    try:
        if git("merge-base", "--is-ancestor", FIRST_SUBJECT, "HEAD").returncode:
            return  # no checkout of git, or a shallow one
    except FileNotFoundError:
        return
    for line in git("log", "--no-merges", "--format=%h %s", f"{FIRST_SUBJECT}..HEAD").stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > MAX_SUBJECT:
            yield f"subject: {commit} has {len(subject)} characters; expected at most {MAX_SUBJECT}: {subject}"


def main(root):
    product = [f for folder in PRODUCT for f in files_below(root, folder)]
    others = [f for folder in OTHERS for f in files_below(root, folder) if not f.startswith(DATA)]
    code = [f for f in product if is_code(f)]
    headers = {f for f in code if f.endswith(".h")}
    everything = product + others
    lists = [f for f in everything if f.endswith("CMakeLists.txt") or f.endswith(".cmake")]
    links, sources = rooms_of(root, [f for f in lists if f not in others])
    problems = [
        *cycles(root, code, headers),
        *unlinked(root, code, headers, links, sources),
        *ring_of_calls(root, code, links),
        *unlisted(root, [f for f in everything if f.endswith((".c", ".cpp"))], lists, sources),
        *long_lines(root, [f for f in everything if is_code(f)]),
        *long_readmes(root, ["README.md", *(f for f in product if f.endswith(".md"))]),
        *dangling_comments(root, [f for f in everything if is_code(f) or f.endswith((".py", ".cmake", "CMakeLists.txt"))]),
        *long_subjects(root),
    ]
    for problem in problems:
        print(problem)
    print(f"{len(code)} files in {len(links)} rooms: " + (f"{len(problems)} problems" if problems else "as it should be"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
