// What the scenarios of attributes have in common: classes of attributes, claims some of which have one, quotas that count
// them, and the production code that grows volumes and changes their attributes, in one process with few workers.
import { allGatesOn } from '../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { createExpanding } from '../../controllers/expanding/index.ts'
import { createModifying } from '../../controllers/modifying/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import type { SimDriver } from '../driver.ts'
import type { Env } from '../process.ts'
import { boundClaims, handleOf, runChanges, type Ways } from './expansion-world.ts'

export interface SimClass {
  readonly parameters: Readonly<Record<string, string>>
  /** Of another driver than the one of this world. */
  readonly isForeign?: true
}

/** By name. The driver of the world knows no colours, and refuses `odd` whenever it is asked. */
export const CLASSES: Readonly<Record<string, SimClass>> = {
  silver: { parameters: { iops: '500', tier: 'silver' } },
  gold: { parameters: { iops: '1000' } },
  bronze: { parameters: { tier: 'bronze' } },
  late: { parameters: { tier: 'late', iops: '300' } },
  odd: { parameters: { colour: 'red' } },
  foreign: { parameters: { tier: 'theirs' }, isForeign: true },
}

/** Fewer than there are claims. */
export const WORKERS = 2

export const GOLD_QUOTA = 'gold-only'
export const AMOUNTS_QUOTA = 'amounts'

export interface ModifiableClaims {
  readonly names: readonly string[]
  /** Those that have the class silver, and of the others nobody knows what they have. */
  readonly silver: readonly string[]
  /** Classes that exist from the start. */
  readonly classes: readonly string[]
  /** How many claims may have or want gold. */
  readonly goldMax: number
}

export async function modifiableClaims(client: Client, driver: SimDriver, wanted: ModifiableClaims): Promise<void> {
  await boundClaims(client, driver, wanted.names, '40Gi')
  for (const name of wanted.classes) await createClass(client, driver, name)
  for (const name of wanted.silver) {
    const held = driver.state().volumes[handleOf(name)]!
    driver.state().volumes[handleOf(name)] = { ...held, mutableParameters: { ...CLASSES.silver!.parameters } }
    const spec = { volumeAttributesClassName: 'silver' }
    const ref = { namespace: 'default', name }
    await client.patch(persistentVolumeKind, { name: `pv-${name}` }, { type: 'merge', body: { spec } })
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { spec } })
    const body = { status: { currentVolumeAttributesClassName: 'silver' } }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, { subresource: 'status' })
  }
  await createQuota(client, GOLD_QUOTA, {
    hard: { persistentvolumeclaims: String(wanted.goldMax) },
    scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }] },
  })
  await createQuota(client, AMOUNTS_QUOTA, { hard: { 'requests.iops': '100000', persistentvolumeclaims: '100' } })
}

const createQuota = (client: Client, name: string, spec: object): Promise<unknown> =>
  client.create(resourceQuotaKind, { metadata: { namespace: 'default', name }, spec } as never)

export function createClass(client: Client, driver: SimDriver, name: string): Promise<unknown> {
  const { parameters, isForeign } = CLASSES[name]!
  const driverName = isForeign ? 'others.example.com' : driver.settings.name
  return client.create(volumeAttributesClassKind, { metadata: { name }, driverName, parameters } as never)
}

/** As in the program: room first, then attributes, with one limit of workers. */
export const runChanger = (env: Env, ways: Ways, driver: CsiDriver): Promise<void> =>
  runChanges(env, ways, driver, {
    component: 'changer',
    changesOf: (deps) => [createExpanding(deps), createModifying({ ...deps, gates: allGatesOn })],
    workers: WORKERS,
  })
