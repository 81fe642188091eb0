// Bootstrap tokens, as in kubeadm: a Secret in kube-system with a token that authenticates a joining node. In
// addition, a token can be bound to the name of one node.
import type { Secret } from './secret-schema.ts'

export const BOOTSTRAP_TOKEN_TYPE = 'bootstrap.kubernetes.io/token'
export const BOOTSTRAP_TOKEN_NAMESPACE = 'kube-system'
export const BOOTSTRAPPERS_GROUP = 'system:bootstrappers'
/** The extra group of the tokens of `stowage token create`. Its bindings allow a node to join. */
export const NODE_TOKEN_GROUP = 'system:bootstrappers:stowage:node-token'

const NAME_PREFIX = 'bootstrap-token-'
const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/

export interface BootstrapToken {
  readonly id: string
  readonly secret: string
  readonly description: string
  /** The only node that can join with the token. Empty for any node. */
  readonly nodeName: string
  /** Infinity if the token does not expire. */
  readonly expiresAtMs: number
  readonly canAuthenticate: boolean
  /** Whether the ConfigMap cluster-info is signed with the token. */
  readonly canSign: boolean
  readonly groups: readonly string[]
}

export const secretNameOf = (tokenId: string): string => `${NAME_PREFIX}${tokenId}`

/** Splits a token into id and secret. Returns undefined if the text is not a bootstrap token. */
export function splitToken(text: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = TOKEN.exec(text) ?? []
  return id && secret ? { id, secret } : undefined
}

/** Reads a Secret's token. Returns undefined if the Secret is not a valid bootstrap token. */
export function parseTokenSecret({ metadata, type, data = {} }: Readonly<Secret>): BootstrapToken | undefined {
  const textOf = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('utf8')
  const id = textOf('token-id')
  const secret = textOf('token-secret')
  if (type !== BOOTSTRAP_TOKEN_TYPE || metadata.name !== secretNameOf(id) || !splitToken(`${id}.${secret}`))
    return undefined
  const extraGroups = textOf('auth-extra-groups')
    .split(',')
    .filter((group) => group !== '')
  if (!extraGroups.every((group) => EXTRA_GROUP.test(group))) return undefined
  const expiration = textOf('expiration')
  const expiresAtMs = expiration === '' ? Number.POSITIVE_INFINITY : Date.parse(expiration)
  return {
    id,
    secret,
    description: textOf('description'),
    nodeName: textOf('node-name'),
    expiresAtMs: Number.isNaN(expiresAtMs) ? 0 : expiresAtMs,
    canAuthenticate: textOf('usage-bootstrap-authentication') === 'true',
    canSign: textOf('usage-bootstrap-signing') === 'true',
    groups: [BOOTSTRAPPERS_GROUP, ...new Set(extraGroups)],
  }
}

/** Returns the Secret of a token that a node can join with. */
export function tokenSecret(
  token: Pick<BootstrapToken, 'id' | 'secret' | 'nodeName' | 'description'> & { expiration: string },
): Secret {
  return {
    metadata: { name: secretNameOf(token.id), namespace: BOOTSTRAP_TOKEN_NAMESPACE },
    type: BOOTSTRAP_TOKEN_TYPE,
    stringData: {
      'token-id': token.id,
      'token-secret': token.secret,
      expiration: token.expiration,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': NODE_TOKEN_GROUP,
      'node-name': token.nodeName,
      ...(token.description ? { description: token.description } : {}),
    },
  }
}
