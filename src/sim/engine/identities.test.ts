import { describe, expect, it } from 'vitest'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { find } from '../../client/index.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { createSimulation } from '../environment/simulation.ts'
import type { Setup } from '../plan/plan.ts'
import { createInitialObjects } from './initial-objects.ts'
import { createSystem } from './system.ts'

const SETUP: Setup = {
  nodes: 2,
  controlReplicas: 1,
  driverControllers: 'in-process',
  commits: 'atomic',
  capacityReservation: false,
  expansionQuota: 'high-water-mark',
  netExpandsWithoutNode: false,
  identities: true,
}

describe('a system with identities', () => {
  it('SYS-9 SYS-23 lets agents register as their nodes, denies them other nodes and lists of volumes, and creates default ServiceAccounts', async () => {
    const simulation = createSimulation(1)
    const { cluster, start, dispose } = await createSystem(simulation, SETUP)
    const client = cluster.directClient()!
    const wait = <T>(work: Promise<T>) => runUntilSettled(simulation, work, 'the API server')
    await wait(createInitialObjects(client, SETUP))
    start()
    const names = async () => (await wait(client.list(nodeKind))).items.map(({ metadata }) => metadata.name)
    while ((await names()).length < SETUP.nodes) await wait(simulation.clock.sleep(1_000, new AbortController().signal))
    const nodeClient = cluster.withNodePermissions('n1')(client)
    expect((await wait(nodeClient.get(nodeKind, { name: 'n1' }))).metadata.name).toBe('n1')
    await expect(wait(nodeClient.get(nodeKind, { name: 'n2' }))).rejects.toThrow('only its own Node object')
    await expect(wait(nodeClient.list(persistentVolumeKind))).rejects.toThrow('is forbidden')
    const account = await wait(find(client, serviceAccountKind, { namespace: 'team-a', name: 'default' }))
    expect(account?.metadata.name).toBe('default')
    dispose()
  })
})
