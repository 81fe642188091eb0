// The CPU profiles of measured processes: where they are written, how their frames are named, and the flame graphs built from
// them, one per program and part, with an index page.
//   DIR/provisioning/alone/up-1/CPU.….cpuprofile    raw, for the developer tools of browsers and editors
//   DIR/provisioning-alone-up.html                  the flame graph of all profiles of that program
//   DIR/index.html
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { SourceMap } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CallFrame, type CpuProfile, type Flame, findHottestFunctions, foldProfiles } from './flame-graph.ts'
import { renderFlamePage } from './flame-page.ts'
import { escapeXml } from './svg.ts'

const PROFILE = '.cpuprofile'
let profileCount = 0

/**
 * Returns the flags with which Node.js writes CPU profiles below `dir`, or none without `dir`. Each process has its own
 * directory, because its threads write profiles too.
 */
export const profileFlags = (dir: string | undefined, program: string): string[] =>
  dir === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', join(dir, `${program}-${++profileCount}`)]

/** Writes a page per program and part, and an index. Returns the path of the index. */
export async function writeFlameGraphs(dir: string): Promise<string> {
  const groups = new Map<string, string[]>()
  for (const path of listProfiles(dir)) {
    const name = relative(dir, dirname(path)).replaceAll('/', '-').replace(/-\d+$/, '')
    groups.set(name, [...(groups.get(name) ?? []), path])
  }
  const nameOf = createFrameNames()
  const pages: { name: string; flame: Flame }[] = []
  for (const [name, paths] of [...groups].sort()) {
    const profiles: CpuProfile[] = []
    for (const path of paths) profiles.push(JSON.parse(await readFile(path, 'utf8')))
    await nameOf.load(profiles)
    const flame = foldProfiles(profiles, nameOf)
    await writeFile(join(dir, `${name}.html`), renderFlamePage(name, flame))
    pages.push({ name, flame })
  }
  const index = join(dir, 'index.html')
  await writeFile(index, indexPage(pages))
  return index
}

function listProfiles(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(PROFILE))
    .map((entry) => join(entry.parentPath, entry.name))
}

interface FrameNames {
  (frame: CallFrame): string
  /** Loads the source maps of the profiled files. */
  load(profiles: readonly CpuProfile[]): Promise<void>
}

/** Names a frame by its function and its source file, from the source map of the bundle. */
export function createFrameNames(): FrameNames {
  const maps = new Map<string, SourceMap | undefined>()
  const cachedNames = new Map<string, string>()
  const nameOf = (frame: CallFrame): string => {
    const { functionName, url, lineNumber, columnNumber } = frame
    const key = `${functionName} ${url} ${lineNumber} ${columnNumber}`
    let name = cachedNames.get(key)
    if (name === undefined) {
      name = frameName(frame, maps.get(url))
      cachedNames.set(key, name)
    }
    return name
  }
  const load = async (profiles: readonly CpuProfile[]) => {
    for (const url of new Set(profiles.flatMap(({ nodes }) => nodes.map(({ callFrame }) => callFrame.url)))) {
      if (maps.has(url) || !url.startsWith('file:')) continue
      const text = await readFile(`${fileURLToPath(url)}.map`, 'utf8').catch(() => undefined)
      maps.set(url, text === undefined ? undefined : new SourceMap(JSON.parse(text)))
    }
  }
  return Object.assign(nameOf, { load })
}

function frameName({ functionName, url, lineNumber, columnNumber }: CallFrame, map: SourceMap | undefined): string {
  const entry = map?.findEntry(lineNumber, columnNumber)
  const source = entry && 'originalSource' in entry ? entry.originalSource : undefined
  const line = entry && 'originalLine' in entry ? entry.originalLine : lineNumber
  const file = source ? source.replace(/^(\.\.\/)*/, '').replace(/^node_modules\//, '') : basename(url)
  if (file === '') return functionName // frames of V8 such as (program) and (garbage collector)
  return functionName === '' ? `(anonymous) ${file}:${line + 1}` : `${functionName} ${file}`
}

const HOT_IN_INDEX = 8

function indexPage(pages: readonly { readonly name: string; readonly flame: Flame }[]): string {
  const rows = pages.map(({ name, flame }) => {
    const hot = findHottestFunctions(flame, HOT_IN_INDEX).map(
      (entry) => `${((100 * entry.self) / flame.total).toFixed(1)} % ${escapeXml(entry.name)}`,
    )
    return `<h2><a href="${escapeXml(name)}.html">${escapeXml(name)}</a></h2>\n<p>${hot.join('<br>\n')}</p>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>CPU time by function</title>
<style>body{font:14px system-ui,sans-serif;margin:16px;color-scheme:light dark}</style>
<h1>CPU time by function</h1>
${rows.join('\n')}
</html>
`
}
