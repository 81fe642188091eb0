// The dependencies of the verbs, and small functions that most verbs share.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { ExpansionQuota, KubeObject, RuleContext } from '../../api/kind.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Store, Write } from '../../store/index.ts'
import type { AdmissionChain } from '../admission/index.ts'
import type { OperationBoard } from '../operations/operation-board.ts'
import type { Resource, Resources } from '../resources.ts'
import type { Authorizer } from '../security/index.ts'
import type { AccountTokens } from '../service-accounts/index.ts'
import type { Journal } from '../timeline/journal.ts'
import type { Shared, StoredObjects } from './stored-object.ts'

export interface ObjectDeps {
  readonly store: Store
  /** Operations, which are kept in memory. Absent if the server serves none. */
  readonly operations?: OperationBoard
  /** Records the changes to volumes. Absent if the server keeps no journal. */
  readonly journal?: Journal
  readonly clock: Clock
  readonly random: Random
  readonly gates: FeatureGates
  readonly expansionQuota: ExpansionQuota
  readonly objects: StoredObjects
  readonly resources: Resources
  readonly admission: AdmissionChain
  /** Checks permissions that a request needs beyond its verb and resource, such as for the audience of a token. */
  readonly authorizer: Authorizer
  /** Whether objects record which client set which field. An apply always records its fields. */
  readonly trackManagedFields: boolean
  /** Issues the tokens of ServiceAccounts. Absent on a server without keys, which serves no serviceaccounts/token. */
  readonly accountTokens?: Pick<AccountTokens, 'apiAudiences' | 'lifetimeSecondsMax' | 'issue'>
}

/** An object of any kind. */
// biome-ignore lint/suspicious/noExplicitAny: no static type covers the fields of every kind
export type AnyObject = any

export const ruleContext = ({ clock, gates, expansionQuota }: ObjectDeps): RuleContext => ({
  nowMs: clock.nowMs(),
  gates,
  expansionQuota,
})

/** Converts a stored object to the requested kind; for example, a core event to an events.k8s.io event. */
export const viewOf = (resource: Resource, storedObject: Shared): AnyObject =>
  resource.kind.viewOf?.fromStored(storedObject) ?? storedObject
/** Converts an object of the requested kind to the stored kind. */
export const storedObjectOf = (resource: Resource, object: AnyObject): KubeObject =>
  resource.kind.viewOf?.toStored(object) ?? object

/** Builds the put for an encoded object, with an expiry time if objects of its kind expire. */
export function putOf(deps: ObjectDeps, resource: Resource, key: string, object: KubeObject, value: Uint8Array): Write {
  const expiresAtMs = resource.storedKind.expiresAtMs?.(object, ruleContext(deps))
  return expiresAtMs === undefined ? { put: key, value } : { put: key, value, expiresAtMs }
}
