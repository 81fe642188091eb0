// The user of a request with a bootstrap token.
import type { BootstrapToken } from '../../api/kinds/secret/bootstrap-token-secret.ts'
import type { UserInfo } from '../security/index.ts'

/** The user attribute that names the node to which a token is bound. */
const NODE_ATTRIBUTE = 'stowage.dev/node-name'

export const userOfBootstrapToken = ({ id, nodeName, groups }: BootstrapToken): UserInfo => ({
  name: `system:bootstrap:${id}`,
  groups,
  ...(nodeName ? { extra: { [NODE_ATTRIBUTE]: [nodeName] } } : {}),
})

/** Returns the node to which a user's token is bound, or undefined if the user has no such token. */
export const boundNodeOf = ({ name, extra }: UserInfo): string | undefined =>
  name.startsWith('system:bootstrap:') ? extra?.[NODE_ATTRIBUTE]?.[0] : undefined
