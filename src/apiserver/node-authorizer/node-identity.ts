// A node's identity: the user `system:node:NAME` in the group `system:nodes`.
import { AUTHENTICATED_GROUP, type UserInfo } from '../security/index.ts'

export const NODE_USER_PREFIX = 'system:node:'
export const NODES_GROUP = 'system:nodes'

export const nodeUser = (nodeName: string): UserInfo => ({
  name: `${NODE_USER_PREFIX}${nodeName}`,
  groups: [NODES_GROUP, AUTHENTICATED_GROUP],
})

/** Returns the name of the node, which can be empty, or undefined if the user is not a node. */
export const nodeNameOf = ({ name, groups }: UserInfo): string | undefined =>
  name.startsWith(NODE_USER_PREFIX) && groups.includes(NODES_GROUP) ? name.slice(NODE_USER_PREFIX.length) : undefined
