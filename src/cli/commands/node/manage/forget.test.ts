import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { podKind } from '../../../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../../api/kinds/volume/volume-schema.ts'
import { createServerFixture } from '../../../../apiserver/server.fixture.ts'
import { forgetNode } from './forget.ts'

const NAMESPACE = 'default'

describe('forgetNode', () => {
  it('PLUS-11 keeps objects that were created with the same names after the plan', async () => {
    const { client: clientOf, clock } = await createServerFixture()
    const client = clientOf()
    const node = await client.create(nodeKind, { metadata: { name: 'a' } })
    await client.create(podKind, {
      metadata: { namespace: NAMESPACE, name: 'web-0' },
      spec: { nodeName: 'b', containers: [{ name: 'main', image: 'busybox' }] },
    } as never)
    await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: NAMESPACE, name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await client.create(persistentVolumeKind, {
      metadata: { name: 'pv', finalizers: ['example.com/keep'] },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'x.example', volumeHandle: 'v' },
      },
    } as PersistentVolume)
    const plan = {
      node: 'a',
      pods: [{ namespace: NAMESPACE, name: 'web-0', uid: 'earlier-pod' }],
      attachments: [],
      capacityObjects: [],
      hasCsiNode: false,
      volumes: [
        {
          volume: 'pv',
          uid: 'earlier-volume',
          size: '1Gi',
          claim: `${NAMESPACE}/data`,
          claimUid: 'earlier-claim',
        },
      ],
    }
    const { signal } = new AbortController()
    await forgetNode(node, plan, { timeoutMs: 0, deletesVolumes: true }, { client, clock, signal })
    const isDeleted = ({ metadata }: { metadata: { deletionTimestamp?: string } }) =>
      metadata.deletionTimestamp !== undefined
    expect(isDeleted(await client.get(podKind, { namespace: NAMESPACE, name: 'web-0' }))).toBe(false)
    expect(isDeleted(await client.get(persistentVolumeClaimKind, { namespace: NAMESPACE, name: 'data' }))).toBe(false)
    const volume = await client.get(persistentVolumeKind, { name: 'pv' })
    expect(isDeleted(volume)).toBe(false)
    expect(volume.metadata.finalizers).toContain('example.com/keep')
  })
})
