// Enforces the layer table of ARCHITECTURE.md: which folder under src/ may import which, no cycle between folders, no
// cycle of runtime imports between files, and a maximum number of files per folder. Test support and the simulator may import
// from any folder.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Number of files that a folder may directly contain, without tests or fixtures. */
const FOLDER_FILES_MAX = 27

/**
 * Files without run-time imports. The console's page uses their functions, so it computes sizes and formats ages as the server
 * and kubectl's tables do.
 */
const PAGE_FUNCTIONS: ReadonlySet<string> = new Set(['src/api/quantity.ts', 'src/api/columns.ts'])

interface Import {
  readonly from: string
  readonly to: string
  readonly isTypeOnly: boolean
}

const isTestSupport = (file: string): boolean =>
  /\.(test|fixture|contract|host\.test)\.ts$|\/testing\//.test(file) || file.startsWith('src/sim/')

const files = sourceFiles(join(ROOT, 'src')).map((file) => relative(ROOT, file))
const imports = files.flatMap(importsOf)
const table = readTable(readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8'))

describe('layers', () => {
  it('ARCHITECTURE.md lists every folder of src/', () => {
    const folders = new Set(files.map(folderOf))
    expect([...folders].filter((folder) => !table.has(folder))).toEqual([])
  })

  it('a folder imports only the folders in its row of the table', () => {
    const forbiddenImports = imports
      .filter(({ from, to }) => folderOf(from) !== folderOf(to) && !isTestSupport(from))
      .filter(({ from, to }) => isTestSupport(to) || !mayImport(folderOf(from), folderOf(to)))
      .map(({ from, to }) => `${from} imports ${to}`)
    expect(forbiddenImports).toEqual([])
  })

  it('the page of the console imports only types and listed pure functions from outside its folder', () => {
    const isPage = (file: string) => file.startsWith('src/console/page/')
    const forbiddenImports = imports
      .filter(({ from, to, isTypeOnly }) => isPage(from) && !isPage(to) && !isTypeOnly && !isTestSupport(from))
      .filter(({ to }) => !PAGE_FUNCTIONS.has(to))
      .map(({ from, to }) => `${from} imports ${to}`)
    expect(forbiddenImports).toEqual([])
  })

  it('the table has no cycle', () => {
    const edges = [...table].flatMap(([from, row]) => [...row].map((to) => [from, to] as const))
    expect(findCycle(edges)).toBeUndefined()
  })

  it('no file imports itself at run time through other files', () => {
    const edges = imports.filter(({ isTypeOnly }) => !isTypeOnly).map(({ from, to }) => [from, to] as const)
    expect(findCycle(edges)).toBeUndefined()
  })

  it(`no folder has more than ${FOLDER_FILES_MAX} direct files`, () => {
    const counts = new Map<string, number>()
    for (const file of files) {
      if (/\.(test|fixture)\.tsx?$/.test(file)) continue
      counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
    }
    expect([...counts].filter(([, count]) => count > FOLDER_FILES_MAX)).toEqual([])
  })
})

function mayImport(from: string, to: string): boolean {
  return table.get(from)?.has(to) ?? false
}

/** `src/store/lmdb.ts` → `store`; files directly under src/ are each a layer: `main.ts`. */
function folderOf(file: string): string {
  return file.split('/')[1]!
}

function sourceFiles(dir: string): string[] {
  return readdirSync(dir).flatMap((name) => {
    const path = join(dir, name)
    if (statSync(path).isDirectory()) return name === 'gen' ? [] : sourceFiles(path)
    return /\.tsx?$/.test(path) ? [path] : []
  })
}

function importsOf(from: string): Import[] {
  const text = readFileSync(join(ROOT, from), 'utf8')
  const statements = text.matchAll(/^(?:import|export)\s+(type\s+)?([^'";]*?)\s*from\s+'(\.[^']+)'/gm)
  const dynamicImports = text.matchAll(/\bimport\(\s*'(\.[^']+)'\s*\)/g)
  return [
    ...[...statements].map(([, type, names, specifier]) => ({
      from,
      to: resolve(from, specifier!),
      isTypeOnly: Boolean(type) || importsOnlyTypes(names!),
    })),
    // A dynamic import runs later, so it cannot be part of an initialisation cycle.
    ...[...dynamicImports].map(([, specifier]) => ({ from, to: resolve(from, specifier!), isTypeOnly: true })),
  ].filter(({ to }) => to.startsWith('src/') && !to.includes('/gen/'))
}

function resolve(from: string, specifier: string): string {
  return normalize(join(dirname(from), specifier))
}

/** Whether an import is erased at run time: `{ type A, type B }` is, `{ type A, b }` is not. */
function importsOnlyTypes(names: string): boolean {
  const list = /^\{([^}]*)\}$/.exec(names.trim())?.[1]
  const specifiers = list?.split(',').map((specifier) => specifier.trim())
  return specifiers?.filter(Boolean).every((specifier) => specifier.startsWith('type ')) ?? false
}

/** Parses rows such as "| `store/` | job | base, api |". "all" means every folder of the rows above. */
function readTable(markdown: string): Map<string, Set<string>> {
  const rows = new Map<string, Set<string>>()
  for (const [, folder, allowedText] of markdown.matchAll(/^\| `([\w.]+)\/?` \|[^|]*\| ([^|]*) \|$/gm)) {
    const foldersAbove = [...rows.keys()]
    rows.set(folder!, new Set(allowedText!.trim() === 'all' ? foldersAbove : allowedText!.match(/[\w.]+/g)))
  }
  return rows
}

/** Returns the nodes of one cycle in order, or undefined if the graph has none. */
function findCycle(edges: readonly (readonly [string, string])[]): string[] | undefined {
  const successors = new Map<string, string[]>()
  for (const [from, to] of edges) successors.set(from, [...(successors.get(from) ?? []), to])
  const finishedNodes = new Set<string>()
  const path: string[] = []
  const visit = (node: string): string[] | undefined => {
    if (finishedNodes.has(node)) return undefined
    const index = path.indexOf(node)
    if (index >= 0) return [...path.slice(index), node]
    path.push(node)
    for (const to of successors.get(node) ?? []) {
      const cycle = visit(to)
      if (cycle) return cycle
    }
    path.pop()
    finishedNodes.add(node)
    return undefined
  }
  for (const node of successors.keys()) {
    const cycle = visit(node)
    if (cycle) return cycle
  }
  return undefined
}
