// The user's kubeconfig: chooses the file as kubectl does, and changes it under the lock that kubectl uses. The rest
// of the file is preserved, with its comments.
import { chown, mkdir, open, realpath, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { Document, YAMLMap, YAMLSeq } from 'yaml'
import { loadYaml, type Yaml } from '../../../api/load-yaml.ts'
import type { Clock } from '../../../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../../../base/files.ts'

/** The kind of an entry. Its list is named by the plural, and its content is in the field with this name. */
export type EntryKind = 'cluster' | 'user' | 'context'

export interface KubeconfigDocument {
  /** Returns the content of an entry, or undefined if there is no entry with this name. */
  find(kind: EntryKind, name: string): Readonly<Record<string, unknown>> | undefined
  /** Adds or replaces an entry. */
  set(kind: EntryKind, name: string, content: Readonly<Record<string, string>>): void
  remove(kind: EntryKind, name: string): void
  /** The current context, or '' if there is none. */
  currentContext: string
  /** Whether the kubeconfig has no clusters, users or contexts. */
  readonly isEmpty: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the first file of $KUBECONFIG that exists, or its last file if none exists, or ~/.kube/config if it is not set. */
export async function chooseKubeconfig(env: Environment): Promise<string> {
  const files = (env.KUBECONFIG ?? '').split(delimiter).filter(Boolean)
  for (const file of files) if (await stat(file).catch(() => undefined)) return file
  return files.at(-1) ?? join(env.HOME || homedir(), '.kube', 'config')
}

export interface UpdateOptions {
  readonly clock: Clock
  /** Whether to delete a file without entries. Default: false. */
  readonly removesEmpty?: boolean
  /** Whether to write nothing, not even the lock. Default: false. */
  readonly isDryRun?: boolean
}

const LOCK_WAIT_MS_MAX = 5_000
const LOCK_POLL_MS = 100

/** Writes the file under its lock after `change` has returned. Does not write it if `change` throws or changes nothing. */
export async function updateKubeconfig<T>(
  file: string,
  change: (document: KubeconfigDocument) => T | Promise<T>,
  { clock, removesEmpty = false, isDryRun = false }: UpdateOptions,
): Promise<T> {
  if (!isDryRun) await mkdir(dirname(file), { recursive: true, mode: 0o750 })
  const unlock = isDryRun ? async () => {} : await lockFile(file, clock)
  try {
    const path = await realpath(file).catch(() => file) // writes through a symbolic link
    const text = (await readTextIfPresent(path)) ?? ''
    const yaml = await loadYaml()
    const document = parseKubeconfig(text, { yaml, file })
    const view = createView(document, yaml)
    const oldText = String(document)
    const result = await change(view)
    if (isDryRun) return result
    if (removesEmpty && view.isEmpty) await rm(path, { force: true })
    else if (String(document) !== oldText) await replaceFile(path, document.toString({ lineWidth: 0 }))
    return result
  } finally {
    await unlock()
  }
}

/** Creates FILE.lock as client-go does. Waits for another program that holds the lock, and throws after LOCK_WAIT_MS_MAX. */
async function lockFile(file: string, clock: Clock): Promise<() => Promise<void>> {
  const path = `${file}.lock`
  for (const endMs = clock.monotonicMs() + LOCK_WAIT_MS_MAX; ; await clock.sleep(LOCK_POLL_MS)) {
    try {
      await (await open(path, 'wx', 0)).close()
      return () => rm(path, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (clock.monotonicMs() < endMs) continue
      throw new Error(`Another program is changing ${file}. If none is, remove the lock it has left: rm ${path}`)
    }
  }
}

/** Preserves the owner of an existing file: root may change the kubeconfig of another user. */
async function replaceFile(path: string, text: string): Promise<void> {
  const owner = await stat(path).catch(() => undefined)
  await writePrivateFile(path, text)
  if (owner && owner.uid !== process.getuid?.()) await chown(path, owner.uid, owner.gid)
}

function parseKubeconfig(text: string, { yaml, file }: { readonly yaml: Yaml; readonly file: string }): Document {
  const document: Document = yaml.parseDocument(text, { prettyErrors: false })
  if (document.contents === null) document.contents = document.createNode({ apiVersion: 'v1', kind: 'Config' })
  if (document.errors.length > 0 || !yaml.isMap(document.contents)) {
    throw new Error(`${file} is not a kubeconfig: its content is not a valid YAML map. Nothing was changed.`)
  }
  return document
}

function createView(document: Document, { isMap, isSeq }: Yaml): KubeconfigDocument {
  const listOf = (kind: EntryKind): YAMLSeq | undefined => {
    const list = document.get(`${kind}s`, true)
    return isSeq(list) ? list : undefined
  }
  const indexOf = (kind: EntryKind, name: string): number =>
    (listOf(kind)?.items ?? []).findIndex((item) => isMap(item) && item.get('name') === name)
  return {
    find(kind, name) {
      const entry = listOf(kind)?.items[indexOf(kind, name)] as YAMLMap | undefined
      const content = entry?.get(kind)
      return isMap(content) ? (content.toJS(document) as Record<string, unknown>) : entry && {}
    },
    set(kind, name, content) {
      const entry = document.createNode({ name, [kind]: content })
      const index = indexOf(kind, name)
      const list = listOf(kind)
      if (!list) document.set(`${kind}s`, document.createNode([entry]))
      else if (index >= 0) list.items[index] = entry
      else list.items.push(entry)
    },
    remove(kind, name) {
      const index = indexOf(kind, name)
      if (index >= 0) listOf(kind)!.items.splice(index, 1)
    },
    get currentContext() {
      return String(document.get('current-context') ?? '')
    },
    set currentContext(name) {
      document.set('current-context', name)
    },
    get isEmpty() {
      return (['cluster', 'user', 'context'] as const).every((kind) => (listOf(kind)?.items ?? []).length === 0)
    },
  }
}
