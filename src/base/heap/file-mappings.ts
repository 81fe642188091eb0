// Finds the files that this process has mapped into memory, in the lists of Linux, and chooses those whose pages can be released:
// the kernel reads a page that is used again from the file, of which it usually still has a copy.
//
// A page of a private mapping that was changed, by the loader or by a debugger, is not in the file. Linux counts such a page as
// anonymous, or as swapped, and a mapping that has one is never chosen.

export interface Mapping {
  readonly address: number
  readonly bytes: number
}

/** Returns the shared read-only mappings of files, such as the one of LMDB, from the content of /proc/self/maps. */
export function sharedFileMappings(maps: string): Mapping[] {
  return splitMappings(maps)
    .map(parseMapping)
    .filter(({ permissions, path }) => permissions === 'r--s' && path.startsWith('/'))
}

/**
 * Returns the mappings of the program's code and constants that have no changed page, from the content of /proc/self/smaps. Those of
 * libraries are left out: another thread may be loading one.
 */
export function programMappings(smaps: string, program: string): Mapping[] {
  const mappings = splitMappings(smaps).map((text) => ({ ...parseMapping(text), hasChanges: hasChangedPages(text) }))
  // The segments of a program follow each other. V8 maps its built-in functions once more elsewhere, and unmaps them with a worker.
  const first = mappings.findIndex(({ path, offset }) => path === program && offset === 0)
  if (first < 0) return []
  const next = mappings.findIndex(({ path }, index) => index > first && path !== program)
  return mappings
    .slice(first, next < 0 ? undefined : next)
    .filter(({ permissions, hasChanges }) => /^r-[x-]p$/.test(permissions) && !hasChanges)
}

/** Each mapping begins with a line such as `00400000-00b6f000 r--p 00000000 fe:00 131 /usr/bin/node`. In smaps, counts follow. */
const splitMappings = (text: string): string[] => text.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m).filter((part) => part !== '')

interface FileMapping extends Mapping {
  readonly permissions: string
  /** The position in the file. */
  readonly offset: number
  readonly path: string
}

function parseMapping(text: string): FileMapping {
  const [, start = '', end = '', permissions = '', offset = '', path = ''] =
    /^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ *(.*)/.exec(text) ?? []
  const address = Number.parseInt(start, 16)
  return { address, bytes: Number.parseInt(end, 16) - address, permissions, offset: Number.parseInt(offset, 16), path }
}

/** Whether a mapping has pages that differ from its file. A list without these counts could hide some. */
const hasChangedPages = (text: string): boolean => !(/^Anonymous: +0 kB$/m.test(text) && /^Swap: +0 kB$/m.test(text))
