// Parses YAML, such as request bodies and configuration files: one document, only values that JSON can represent, with bounds on
// size, depth and aliases. A body that is a JSON object is parsed by parse-json.ts, which is faster: kubectl sends the JSON of an
// apply as application/apply-patch+yaml.
import { isUtf8 } from 'node:buffer'
import type { CST, Document, LineCounter, Node, ParsedNode, Scalar } from 'yaml'
import { VALUES_MAX } from './decode.ts'
import { DUPLICATE_KEYS_MAX, findDuplicateKeys } from './duplicate-keys.ts'
import { isExactNumber } from './exact-number.ts'
import type { JsonValue } from './json-value.ts'
import { loadYaml, type Yaml } from './load-yaml.ts'
import { decodeJson, INEXACT_MESSAGE, TooManyKeysError } from './parse-json.ts'

const YAML_DEPTH_MAX = 100 // deeper bodies are rejected: the parser recurses, and a few thousand levels overflow the stack
const YAML_TOKENS_MAX = 20_000 // longer bodies are rejected and can be sent as JSON
const YAML_BYTES_MAX = 512 * 1024 // larger bodies are rejected too: comments, empty lines and block scalars have few tokens
const TOKENS_PER_SLICE = 1_000
const YAML_ALIASES_MAX = 100 // bodies with more aliases, or with aliases that expand to more nodes, are rejected
const YAML_MESSAGE_LENGTH_MAX = 300 // longer messages of the parser are truncated

export class YamlError extends Error {
  override readonly name = 'YamlError'
}

export interface DecodedYaml {
  readonly value: JsonValue
  /** Paths of duplicate keys, as from findDuplicateKeys. The last value wins. */
  readonly duplicateKeys: readonly string[]
}

type Pause = () => Promise<void>

/**
 * Parses a body, and calls `pause` between slices of long YAML. The value of an empty body is null. Throws a YamlError if the
 * body cannot be parsed.
 */
export async function parseYaml(body: Uint8Array | string, pause: Pause = async () => {}): Promise<DecodedYaml> {
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  const decodedJson = decodeIfJson(text)
  if (decodedJson) return decodedJson
  if (body.length > YAML_BYTES_MAX) {
    throw new YamlError(`invalid YAML: the body has more than ${YAML_BYTES_MAX} bytes; send it as JSON instead`)
  }
  return decodeYaml(text, pause)
}

function decodeUtf8(body: Uint8Array): string {
  if (!isUtf8(body)) throw new YamlError('invalid YAML: the body is not valid UTF-8')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}

// Every JSON object is YAML with the same meaning. Text that only looks like JSON, such as `{a: 1}`, is parsed as YAML.
function decodeIfJson(text: string): DecodedYaml | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    return {
      value: decodeJson(text, { keysMax: VALUES_MAX }).value as JsonValue,
      duplicateKeys: findDuplicateKeys(text),
    }
  } catch (error) {
    if (error instanceof TooManyKeysError) throw new YamlError(error.message)
    return undefined
  }
}

async function decodeYaml(text: string, pause: Pause): Promise<DecodedYaml> {
  const yaml = await loadYaml()
  const lines = new yaml.LineCounter()
  const composer = new yaml.Composer({
    schema: 'core',
    merge: true,
    resolveKnownTags: false,
    uniqueKeys: false, // findDuplicates reports duplicate keys
    prettyErrors: false, // pretty errors quote the body, which may contain a secret
  })
  const { tokens, isLong } = await readTokens(yaml, text, lines, pause)
  const [document, secondDocument] = [...composer.compose(tokens, true, text.length)]
  if (secondDocument) throw new YamlError('invalid YAML: the body contains more than one document')
  const problem = document!.errors[0] ?? document!.warnings[0]
  if (problem) {
    const { line, col } = lines.linePos(problem.pos[0])
    throw new YamlError(`invalid YAML: ${truncate(problem.message)} at line ${line}, column ${col}`)
  }
  if (isLong) await pause()
  const duplicateKeys = findDuplicates(yaml, document!)
  return { value: toJson(document!), duplicateKeys }
}

/** Builds the syntax tree without recursion and checks its bounds before recursive code processes it. */
async function readTokens(yaml: Yaml, text: string, lines: LineCounter, pause: Pause) {
  const parser = new yaml.Parser(lines.addNewLine)
  lines.addNewLine(0)
  const tokens: CST.Token[] = []
  let lexemeCount = 0
  for (const lexeme of new yaml.Lexer().lex(text)) {
    if (++lexemeCount > YAML_TOKENS_MAX) {
      throw new YamlError(`invalid YAML: the body has more than ${YAML_TOKENS_MAX} tokens; send it as JSON instead`)
    }
    tokens.push(...parser.next(lexeme))
    if (lexemeCount % TOKENS_PER_SLICE === 0) await pause()
  }
  tokens.push(...parser.end())
  checkBounds(tokens)
  return { tokens, isLong: lexemeCount > TOKENS_PER_SLICE }
}

function checkBounds(tokens: readonly CST.Token[]): void {
  const pendingTokens = tokens.map((token) => ({ token, depth: 0 }))
  let aliasCount = 0
  for (let pendingToken = pendingTokens.pop(); pendingToken; pendingToken = pendingTokens.pop()) {
    const { token, depth } = pendingToken
    if (depth > YAML_DEPTH_MAX) throw tooDeep()
    if (token.type === 'alias' && ++aliasCount > YAML_ALIASES_MAX) {
      throw new YamlError(`invalid YAML: the body has more than ${YAML_ALIASES_MAX} aliases`)
    }
    if (token.type === 'document' && token.value) pendingTokens.push({ token: token.value, depth })
    if (!('items' in token)) continue
    for (const { key, value } of token.items as CST.CollectionItem[]) {
      if (key) pendingTokens.push({ token: key, depth: depth + 1 })
      if (value) pendingTokens.push({ token: value, depth: depth + 1 })
    }
  }
}

/** Returns the paths of duplicate keys, and rejects keys and numbers that JSON cannot represent. */
function findDuplicates({ isMap, isScalar, isSeq }: Yaml, document: Document): string[] {
  const duplicates = new Set<string>()
  const visit = (node: unknown, path: string): void => {
    if (isScalar(node)) checkNumber(node, path)
    if (isSeq(node)) node.items.forEach((item, i) => void visit(item, `${path}[${i}]`))
    if (!isMap(node)) return
    const keys = new Set<string>()
    for (const { key, value } of node.items) {
      if (!isScalar(key)) throw new YamlError(`invalid YAML: ${path || 'the document'} has a key that is not a scalar`)
      const name = key.value === null ? '' : String(key.value)
      const inner = path === '' ? name : `${path}.${name}`
      if (keys.has(name) && duplicates.size < DUPLICATE_KEYS_MAX) duplicates.add(inner)
      keys.add(name)
      visit(value, inner)
    }
  }
  visit(document.contents, '')
  return [...duplicates]
}

function checkNumber({ value, source }: Scalar, path: string): void {
  if (typeof value !== 'number' || !Number.isFinite(value) || source === undefined) return
  const isExact = /^0[ox]/.test(source) ? Number.isSafeInteger(value) : isExactNumber(source)
  if (!isExact) throw new YamlError(`invalid YAML: the number in ${path || 'the document'} ${INEXACT_MESSAGE}`)
}

function toJson(document: Document<Node> | Document.Parsed<ParsedNode>): JsonValue {
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: YAML_ALIASES_MAX })
  } catch (error) {
    throw new YamlError(`invalid YAML: ${truncate((error as Error).message)}`) // an alias without an anchor, or too many aliases
  }
  assertJson(value, 0)
  return value as JsonValue
}

// Rejects values that JSON cannot represent. An alias to its own parent makes an infinite value, which exceeds the depth.
function assertJson(value: unknown, depth: number): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new YamlError(`invalid YAML: ${value} is not a number in JSON`)
    return
  }
  if (depth >= YAML_DEPTH_MAX) throw tooDeep()
  if (typeof value !== 'object' || (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype)) {
    throw new YamlError(`invalid YAML: a ${value?.constructor?.name ?? typeof value} cannot be represented in JSON`)
  }
  for (const inner of Object.values(value)) assertJson(inner, depth + 1)
}

const tooDeep = () => new YamlError(`invalid YAML: maps and lists are nested more than ${YAML_DEPTH_MAX} levels deep`)

const truncate = (message: string): string => message.slice(0, YAML_MESSAGE_LENGTH_MAX)
