// The attributes classes, claims and quotas of the modification crash scenario, and the controllers that expand volumes and
// change their attributes, in one process with few workers.
import { allGatesOn } from '../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { createExpanding } from '../../controllers/expanding/index.ts'
import { createModifying } from '../../controllers/modifying/index.ts'
import type { ProcessContext } from '../engine/process-host.ts'
import type { SimDriver } from '../environment/driver.ts'
import { createBoundClaims, handleOf } from './bound-claims.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'
import { runChanges } from './volume-change-processes.ts'

/** Parameters by class name. The driver rejects `odd`, because it does not support `colour`. */
const CLASSES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  silver: { iops: '500', tier: 'silver' },
  gold: { iops: '1000' },
  bronze: { tier: 'bronze' },
  late: { tier: 'late', iops: '300' },
  odd: { colour: 'red' },
}

/** The number of workers, less than the number of claims. */
export const WORKERS = 2

/** Creates the claims with the class `silver`, every class except `late`, and the quotas. */
export async function createModifiableClaims(client: Client, driver: SimDriver, names: readonly string[]) {
  await createBoundClaims(client, driver, names, '40Gi')
  for (const name of Object.keys(CLASSES)) if (name !== 'late') await createClass(client, name)
  for (const name of names) {
    const driverVolume = driver.state().volumes[handleOf(name)]!
    driver.state().volumes[handleOf(name)] = { ...driverVolume, mutableParameters: { ...CLASSES.silver } }
    const spec = { volumeAttributesClassName: 'silver' }
    const ref = { namespace: NAMESPACE, name }
    await client.patch(persistentVolumeKind, { name: `pv-${name}` }, { type: 'merge', body: { spec } })
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { spec } })
    const body = { status: { currentVolumeAttributesClassName: 'silver' } }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, { subresource: 'status' })
  }
  await createQuota(client, 'gold-only', {
    hard: { persistentvolumeclaims: '10' },
    scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }] },
  })
  await createQuota(client, 'amounts', { hard: { 'requests.iops': '100000', persistentvolumeclaims: '100' } })
}

const createQuota = (client: Client, name: string, spec: object): Promise<unknown> =>
  client.create(resourceQuotaKind, { metadata: { namespace: NAMESPACE, name }, spec } as never)

export const createClass = (client: Client, name: string): Promise<unknown> =>
  client.create(volumeAttributesClassKind, {
    metadata: { name },
    driverName: DRIVER,
    parameters: CLASSES[name]!,
  } as never)

/** Runs the changes as in production: sizes before attributes, with one worker limit for both. */
export const runChanger = (context: ProcessContext): Promise<void> =>
  runChanges(context, {
    component: 'changer',
    changesOf: (deps) => [createExpanding(deps), createModifying({ ...deps, gates: allGatesOn })],
    workers: WORKERS,
  })
