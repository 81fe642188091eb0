// The people of a namespace with quotas: users who create, grow, change and delete claims, controllers' hands that write
// their status, and an administrator who creates, edits and deletes quotas. What they do is up to the dice.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Random } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { QuotaChecker } from '../checkers/quota.ts'

export const NAMESPACE = 'team'
export const STORAGE_CLASSES = ['slow', 'fast']
const ATTRIBUTES_CLASSES = ['gold', 'silver']
const QUOTA_NAMES = ['q0', 'q1', 'q2', 'q3']

/** done, over quota, or not possible: the object is gone, was there already, or has changed. */
export type Outcome = 'done' | 'over quota' | 'not possible' | 'no answer'

export function createQuotaPeople(dice: Random, checker: QuotaChecker, note: (line: string) => void) {
  const roll = (n: number) => Math.floor(dice() * n)
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T
  const refOf = (name: string) => ({ namespace: NAMESPACE, name })
  let made = 0

  async function act(client: Client): Promise<Outcome> {
    const [what, work] = chosen()
    const outcome = await outcomeOf(work(client))
    note(`${what}: ${outcome}`)
    return outcome
  }

  function chosen(): [string, (client: Client) => Promise<unknown>] {
    const some = [...checker.claims.keys()]
    const name = some.length > 0 ? pick(some) : 'c0'
    const patch = (body: object, subresource = '') => {
      return (client: Client) =>
        client.patch(persistentVolumeClaimKind, refOf(name), { type: 'merge', body }, { subresource })
    }
    const size = `${1 + roll(6)}Gi`
    switch (roll(12)) {
      case 0:
      case 1:
        return [`delete ${name}`, (client) => deleteClaim(client, name)]
      case 2:
        return [`grow ${name} to ${size}`, patch({ spec: { resources: { requests: { storage: size } } } })]
      case 3: {
        const volumeAttributesClassName = pick(ATTRIBUTES_CLASSES)
        return [`${name} wants ${volumeAttributesClassName}`, patch({ spec: { volumeAttributesClassName } })]
      }
      case 4: {
        const currentVolumeAttributesClassName = pick([...ATTRIBUTES_CLASSES, null])
        const status = { phase: 'Bound', capacity: { storage: '1Gi' }, currentVolumeAttributesClassName }
        return [`${name} has ${currentVolumeAttributesClassName}`, patch({ status }, 'status')]
      }
      case 5: {
        const status = { allocatedResources: { storage: size } }
        return [`${name} is given ${size}`, patch({ status }, 'status')]
      }
      case 6:
        return administer()
      case 7: {
        const claims = [newClaim(), newClaim()]
        const writes = claims.map((object) => ({ do: 'create', kind: persistentVolumeClaimKind, object }) as const)
        return [`commit ${claims.map(({ metadata }) => metadata.name)}`, (client) => client.commit(writes as never)]
      }
      case 8: {
        const claim = newClaim()
        const tried = (client: Client) => client.create(persistentVolumeClaimKind, claim as never, { dryRun: true })
        return [`try ${claim.metadata.name}`, tried]
      }
      case 9: {
        const metadata = refOf(`m${roll(6)}`)
        if (roll(2)) return [`delete ${metadata.name}`, (client) => client.delete(configMapKind, metadata)]
        return [`create ${metadata.name}`, (client) => client.create(configMapKind, { metadata } as never)]
      }
      default: {
        const claim = newClaim()
        return [`create ${claim.metadata.name}`, (client) => client.create(persistentVolumeClaimKind, claim as never)]
      }
    }
  }

  function newClaim() {
    const requests = { storage: `${1 + roll(4)}Gi`, ...(roll(2) ? { iops: String(100 * (1 + roll(5))) } : {}) }
    const volumeAttributesClassName = pick([...ATTRIBUTES_CLASSES, undefined])
    return claimOf(`c${made++}`, { requests, volumeAttributesClassName, storageClassName: pick(STORAGE_CLASSES) })
  }

  function administer(): [string, (client: Client) => Promise<unknown>] {
    const name = pick(QUOTA_NAMES)
    const spec = newSpec()
    if (!checker.quotas.has(name)) {
      const quota = { metadata: refOf(name), spec }
      return [`new quota ${name} ${JSON.stringify(spec)}`, (client) => client.create(resourceQuotaKind, quota as never)]
    }
    if (roll(4) === 0) return [`delete quota ${name}`, (client) => client.delete(resourceQuotaKind, refOf(name))]
    const body = { spec: { hard: spec.hard, ...(roll(2) ? { scopeSelector: spec.scopeSelector ?? null } : {}) } }
    const edit = (client: Client) => client.patch(resourceQuotaKind, refOf(name), { type: 'merge', body })
    return [`edit quota ${name} ${JSON.stringify(body)}`, edit]
  }

  function newSpec() {
    const operator = pick([undefined, 'In', 'NotIn', 'Exists', 'DoesNotExist'])
    const claimKeys = {
      persistentvolumeclaims: String(3 + roll(9)),
      'count/persistentvolumeclaims': String(3 + roll(9)),
      'requests.storage': `${5 + roll(20)}Gi`,
      [`${pick(STORAGE_CLASSES)}.storageclass.storage.k8s.io/requests.storage`]: `${2 + roll(12)}Gi`,
      'limits.iops': String(300 + roll(2_000)),
      'requests.iops': String(200 + roll(300)),
    }
    const otherKeys = { 'count/configmaps': String(1 + roll(5)), resourcequotas: String(2 + roll(3)) }
    // A selector over claims takes nothing else.
    const keys = operator ? claimKeys : { ...claimKeys, ...otherKeys }
    const hard = Object.fromEntries(Object.entries(keys).filter(() => roll(2) === 0))
    if (Object.keys(hard).length === 0) hard.persistentvolumeclaims = '5'
    const values = operator === 'In' || operator === 'NotIn' ? { values: [pick(ATTRIBUTES_CLASSES)] } : {}
    const matchExpressions = [{ scopeName: 'VolumeAttributesClass', operator, ...values }]
    return { hard, ...(operator ? { scopeSelector: { matchExpressions } } : {}) }
  }

  async function deleteClaim(client: Client, name: string): Promise<void> {
    await client.delete(persistentVolumeClaimKind, refOf(name))
    const body = { metadata: { finalizers: null } }
    await client.patch(persistentVolumeClaimKind, refOf(name), { type: 'merge', body })
  }

  return { act, deleteClaim }
}

export function claimOf(
  name: string,
  asked: { requests: object; volumeAttributesClassName?: string | undefined; storageClassName: string },
) {
  const { requests, volumeAttributesClassName, storageClassName } = asked
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests } }
  return {
    metadata: { namespace: NAMESPACE, name },
    spec: { ...spec, ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}) },
  }
}

export async function outcomeOf(work: Promise<unknown>): Promise<Outcome> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.code === 403 && error.message.includes('exceeded quota')) return 'over quota'
    if ([404, 409, 422].includes(error.code)) return 'not possible'
    if (error.code >= 500 || error.code === 429) return 'no answer'
    throw error
  }
}
