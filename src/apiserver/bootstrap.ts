// What exists before the first client comes: the built-in namespaces. Safe to run at every start and by
// several servers at once.
import { ApiError } from '../api/status-error.ts'
import { BUILT_IN_NAMESPACES } from './admission/index.ts'
import { createObject } from './create-object.ts'
import type { UserInfo } from './security/index.ts'
import type { ObjectDeps } from './write-deps.ts'

/** Who the server is when it acts on its own behalf. */
export const SYSTEM_USER: UserInfo = { name: 'system:apiserver', groups: ['system:masters'] }

export async function createBuiltIns(deps: ObjectDeps): Promise<void> {
  const resource = deps.resources.preferred('', 'namespaces')
  if (!resource) return
  await Promise.all(
    BUILT_IN_NAMESPACES.map(async (name) => {
      const target = { resource, namespace: '', name: '', subresource: '', user: SYSTEM_USER, dryRun: false }
      try {
        await createObject(deps, target, { metadata: { name } })
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error
      }
    }),
  )
}
