// Tests the topology that the provisioner passes to CreateVolume, and the node affinity of the volumes.
import { describe, expect, it } from 'vitest'
import { CsiError } from '../../../csi/index.ts'
import { aClass, createNode, createProvisionerFixture, failCreateVolume, volumeOf } from './provisioner.fixture.ts'
import { TOPOLOGY_FACTS } from './stub-driver.fixture.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'

describe('topology of created volumes', () => {
  it('PROV-12 finds a volume that a crashed process created for a deleted node', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: TOPOLOGY_FACTS,
      options: { strictTopology: true },
    })
    await createNode(apiServer, 'node-b', { zone: 'b' })
    driver.setReplies({
      createVolume: async ({ accessibilityRequirements }) => {
        if (accessibilityRequirements) throw new CsiError('ALREADY_EXISTS', 'volume "pvc-uid-1" exists in zone a')
        return { volume: { volumeId: 'v', capacityBytes: 100n, accessibleTopology: [{ segments: { zone: 'a' } }] } }
      },
    })
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({
      is: 'provisioned',
      volume: {
        spec: { csi: { volumeHandle: 'v' } },
        unusableReason: 'an earlier attempt created it for another node',
      },
    })
    driver.setReplies(failCreateVolume('ALREADY_EXISTS'))
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({ is: 'failed', failure: 'noChange' })
  })

  it('passes the topology to the driver and converts the topology of the reply to a node affinity', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: TOPOLOGY_FACTS,
      options: { strictTopology: true },
    })
    await createNode(apiServer, 'node-a', { zone: 'a' })
    await createNode(apiServer, 'node-b', { zone: 'b' })
    driver.setReplies({
      createVolume: async () => ({
        volume: { volumeId: 'v', accessibleTopology: [{ segments: { zone: 'b', rack: '1' } }, {}] },
      }),
    })
    const { spec } = volumeOf(await provision({ selectedNode: 'node-b' }))
    expect(driver.createRequests[0]!.accessibilityRequirements).toMatchObject({
      requisite: [{ segments: { zone: 'b' } }],
      preferred: [{ segments: { zone: 'b' } }],
    })
    expect(spec.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
      {
        matchExpressions: [
          { key: 'rack', operator: 'In', values: ['1'] },
          { key: 'zone', operator: 'In', values: ['b'] },
        ],
      },
    ])
  })

  it('returns no node affinity for empty topologies in the reply', async () => {
    const { provision, driver } = await createProvisionerFixture({
      facts: TOPOLOGY_FACTS,
      options: { immediateTopology: false },
    })
    driver.setReplies({ createVolume: async () => ({ volume: { volumeId: 'v', accessibleTopology: [{}, {}] } }) })
    expect(volumeOf(await provision()).spec.nodeAffinity).toBeUndefined()
  })

  it('repeats the topology in a retry after the node was deleted', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: TOPOLOGY_FACTS })
    await createNode(apiServer, 'node-a', { zone: 'a' })
    driver.setReplies(failCreateVolume('UNAVAILABLE'))
    await provision({ selectedNode: 'node-a' })
    await apiServer.delete('/api/v1/nodes/node-a')
    await apiServer.delete('/apis/storage.k8s.io/v1/csinodes/node-a')
    await new Promise((resolve) => setImmediate(resolve))
    await provision({ selectedNode: 'node-a' })
    expect(driver.createRequests[1]!.accessibilityRequirements).toEqual(
      driver.createRequests[0]!.accessibilityRequirements,
    )
    driver.setReplies(failCreateVolume('INTERNAL'))
    await provision({ selectedNode: 'node-a' }) // a final error discards the recorded topology
    expect(await provision({ selectedNode: 'node-a' })).toMatchObject({ failure: 'reschedule' })
    expect(driver.createRequests).toHaveLength(3)
  })

  it('PLUS-11 reports a node as lost once it is out of service and silent', async () => {
    const { apiServer, provisioner, provision } = await createProvisionerFixture({ facts: TOPOLOGY_FACTS })
    await createNode(apiServer, 'node-a', { zone: 'a' })
    const patch = (path: string, body: object) => apiServer.patch(`/api/v1/nodes/node-a${path}`, body)
    const isLost = async () => {
      await provision({ selectedNode: 'node-a' }) // waits until the caches contain the changes
      return provisioner.isLostNode?.('node-a')
    }
    const setReady = (status: string) => patch('/status', { status: { conditions: [{ type: 'Ready', status }] } })
    await setReady('Unknown')
    expect(await isLost()).toBe(false)
    await patch('', { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } })
    expect(await isLost()).toBe(true)
    await setReady('True')
    expect(await isLost()).toBe(false)
  })

  it('recomputes the topology if another node is selected before the first call', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: TOPOLOGY_FACTS,
      options: { strictTopology: true },
    })
    await createNode(apiServer, 'node-a', { zone: 'a' })
    await createNode(apiServer, 'node-b', { zone: 'b' })
    const storageClass = aClass({
      'csi.storage.k8s.io/provisioner-secret-name': 'late',
      'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
    })
    expect(await provision({ storageClass, selectedNode: 'node-a' })).toMatchObject({ failure: 'noChange' })
    await apiServer.post(SECRETS, { metadata: { name: 'late' }, stringData: { k: 'v' } })
    volumeOf(await provision({ storageClass, selectedNode: 'node-b' }))
    expect(driver.createRequests[0]!.accessibilityRequirements?.requisite).toMatchObject([{ segments: { zone: 'b' } }])
  })
})
