// Runs `stowage token create`, `list` and `delete` as the user of the kubeconfig.
import { randomInt } from 'node:crypto'
import { secretKind } from '../../../api/kinds/secret/secret.ts'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import {
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  parseTokenSecret,
  secretNameOf,
  tokenSecret,
} from '../../../apiserver/index.ts'
import type { Clock } from '../../../base/clock.ts'
import { parseDuration } from '../../../base/duration.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, type Connection, httpClient } from '../../../client/index.ts'
import { computeCaPin } from '../../../nodeagent/join/index.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { formatTable } from '../../output/table.ts'

interface TokenFlags {
  readonly kubeconfig?: string
  readonly dryRun?: boolean
  readonly output?: OutputFormat
}

export interface CreateTokenFlags extends TokenFlags {
  readonly node?: string
  readonly ttl: string
  readonly description?: string
}

export interface TokenDeps {
  readonly clock: Clock
  /** Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const TTL_MS_MIN = 60_000

/** Returns the command's output. */
export async function createToken(flags: CreateTokenFlags, deps: TokenDeps): Promise<string> {
  const { node, ttl, description = '', dryRun = false, output = 'text' } = flags
  if (!node)
    throw new UsageError('stowage token create requires --node: the name of the node that joins with the token.')
  const [problem] = dns1123SubdomainProblems(node)
  if (problem !== undefined) throw new UsageError(`--node ${JSON.stringify(node)}: ${problem}`)
  const ttlMs = parseDuration(ttl)
  if (ttlMs === undefined || ttlMs < TTL_MS_MIN) {
    throw new UsageError(`--ttl ${JSON.stringify(ttl)}: expected a duration of a minute or more, such as 30m or 24h`)
  }
  return withClient(flags, deps, async (client, { server, ca }) => {
    const expiration = timestamp(deps.clock.nowMs() + ttlMs)
    const parts = { id: randomText(6), secret: randomText(16) }
    const secret = tokenSecret({ ...parts, nodeName: node, description, expiration })
    await client.create(secretKind, secret, { dryRun })
    const caCertHash = ca === undefined ? undefined : computeCaPin(ca)
    if (dryRun) {
      const text = () => `Would create a token for node ${node} that expires at ${expiration}.\n`
      return formatOutput(output, { dryRun, node, expiration, server, caCertHash }, text)
    }
    const token = `${parts.id}.${parts.secret}`
    const pin = caCertHash ? ` --ca-cert-hash ${caCertHash}` : ''
    const text = () =>
      `The token for node ${node} expires at ${expiration}. Run this command on the node:\n\n` +
      `  stowage node --join ${server} --node-name ${node} --token ${token}${pin}\n`
    return formatOutput(output, { token, node, expiration, server, caCertHash }, text)
  })
}

export const listTokens = (flags: TokenFlags, deps: TokenDeps): Promise<string> =>
  withClient(flags, deps, async (client) => {
    const fieldSelector = `type=${BOOTSTRAP_TOKEN_TYPE}`
    const { items } = await client.list(secretKind, { namespace: BOOTSTRAP_TOKEN_NAMESPACE, fieldSelector })
    const nowMs = deps.clock.nowMs()
    const tokens = items
      .flatMap((secret) => parseTokenSecret(secret) ?? [])
      .map(({ id, nodeName, expiresAtMs, description }) => ({
        id,
        node: nodeName,
        expiration: Number.isFinite(expiresAtMs) ? timestamp(expiresAtMs) : '',
        isExpired: expiresAtMs <= nowMs,
        description,
      }))
    return formatOutput(flags.output ?? 'text', { tokens }, () => formatTokens(tokens))
  })

interface ListedToken {
  readonly id: string
  readonly node: string
  /** Empty if the token does not expire. */
  readonly expiration: string
  readonly isExpired: boolean
  readonly description: string
}

function formatTokens(tokens: readonly ListedToken[]): string {
  if (tokens.length === 0) return 'There are no tokens. Create one with: stowage token create --node NAME\n'
  const rows = tokens.map(({ id, node, expiration, isExpired, description }) => [
    id,
    node || '<any>',
    `${expiration || '<never>'}${isExpired ? ' (expired)' : ''}`,
    description,
  ])
  return formatTable([['ID', 'NODE', 'EXPIRES', 'DESCRIPTION'], ...rows])
}

export const deleteToken = async (text: string | undefined, flags: TokenFlags, deps: TokenDeps): Promise<string> => {
  if (!text)
    throw new UsageError('stowage token delete requires the id of the token, which "stowage token list" prints.')
  const [id = ''] = text.split('.') // a complete token is accepted too
  const { dryRun = false, output = 'text' } = flags
  return withClient(flags, deps, async (client) => {
    await client.delete(secretKind, { namespace: BOOTSTRAP_TOKEN_NAMESPACE, name: secretNameOf(id) }, { dryRun })
    const message = dryRun ? `Token ${id} would be deleted.\n` : `Token ${id} deleted.\n`
    return formatOutput(output, { id, dryRun }, () => message)
  })
}

async function withClient(
  { kubeconfig }: TokenFlags,
  { clock, env = process.env }: TokenDeps,
  run: (client: Client, connection: Connection) => Promise<string>,
): Promise<string> {
  const { connection } = await loadClientConfig(kubeconfig, { clock, env })
  const client = httpClient({ connection, clock, userAgent: 'stowage-token' })
  try {
    return await run(client, connection)
  } finally {
    client.close()
  }
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** The token is a secret, so its characters come from the system and not from the injected randomness. */
const randomText = (length: number): string =>
  Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
