// Reads the objects of manifest files in YAML or JSON. Each object has its source, the file and the number of the document, for
// messages.
import { readFile } from 'node:fs/promises'
import { isRecord } from '../../api/decode.ts'
import { loadYaml } from '../../api/load-yaml.ts'
import { UsageError } from '../../base/usage-error.ts'

export interface Manifest {
  /** `pods.yaml, document 2`. */
  readonly source: string
  readonly apiVersion: string
  readonly kind: string
  /** The object with apiVersion and kind. */
  readonly value: Readonly<Record<string, unknown>>
}

/** Bounds the aliases that one document may expand, so that a small file cannot exhaust the memory. */
const ALIASES_MAX = 100

/** `-` is standard input. */
export async function readManifests(files: readonly string[]): Promise<Manifest[]> {
  const manifests: Manifest[] = []
  for (const file of files) {
    manifests.push(...(await parseManifests(file, await readText(file))))
  }
  return manifests
}

/** `name` is the file or another source of the text, for messages. */
export async function parseManifests(name: string, text: string): Promise<Manifest[]> {
  const documents = await parseDocuments(name, text)
  return documents.flatMap(({ source, value }) => manifestsOf(source, value))
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file === '-' ? '/dev/stdin' : file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

interface Document {
  readonly source: string
  readonly value: unknown
}

async function parseDocuments(file: string, text: string): Promise<Document[]> {
  const { parseAllDocuments } = await loadYaml()
  const documents = parseAllDocuments(text, { schema: 'core', merge: true, prettyErrors: true })
  if ('empty' in documents) return []
  return documents.flatMap((document, index): Document[] => {
    const source = `${file}, document ${index + 1}`
    const [error] = document.errors
    if (error) throw new UsageError(`${source}: invalid YAML: ${error.message.split('\n')[0]}`)
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX })
    return value === null ? [] : [{ source, value }] // a document with comments only
  })
}

/** Returns the object, or the items of a list. */
function manifestsOf(source: string, value: unknown): Manifest[] {
  if (!isRecord(value)) throw new UsageError(`${source}: expected an object with apiVersion and kind`)
  const { apiVersion, kind, items } = value
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    throw new UsageError(`${source}: the object has no apiVersion or no kind`)
  if (kind.endsWith('List') && Array.isArray(items))
    return items.flatMap((item, index) => manifestsOf(`${source}, item ${index + 1}`, item))
  return [{ source, apiVersion, kind, value }]
}
