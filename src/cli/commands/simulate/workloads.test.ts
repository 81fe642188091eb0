import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../base/usage-error.ts'
import { expandWorkload } from './workloads.ts'

const manifest = (kind: string, spec: object, apiVersion = 'apps/v1') => ({
  source: 'shop.yaml, document 1',
  apiVersion,
  kind,
  value: { metadata: { name: 'web', namespace: 'shop' }, spec },
})
const template = {
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [{ name: 'app' }],
    volumes: [
      { name: 'tmp', emptyDir: {} },
      { name: 'data', emptyDir: {} },
    ],
  },
}

describe('expandWorkload', () => {
  it('PLUS-2 returns the pods of a Deployment, ReplicaSet or Job, one by default', () => {
    for (const [kind, field] of [
      ['Deployment', 'replicas'],
      ['ReplicaSet', 'replicas'],
      ['Job', 'parallelism'],
    ] as const) {
      expect(expandWorkload(manifest(kind, { template }))).toHaveLength(1)
      expect(expandWorkload(manifest(kind, { [field]: 2, template }))).toMatchObject([
        {
          source: 'shop.yaml, document 1, replica 0',
          apiVersion: 'v1',
          kind: 'Pod',
          value: { metadata: { name: 'web-0', namespace: 'shop', labels: { app: 'web' } }, spec: template.spec },
        },
        { kind: 'Pod', value: { metadata: { name: 'web-1' } } },
      ])
    }
    expect(expandWorkload(manifest('Deployment', { replicas: 0, template }))).toEqual([])
  })

  it('PLUS-2 returns the claims and pods of a StatefulSet, and replaces volumes with the names of claim templates', () => {
    const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } }]
    const [claim, pod] = expandWorkload(manifest('StatefulSet', { template, volumeClaimTemplates }))
    expect(claim).toMatchObject({
      kind: 'PersistentVolumeClaim',
      value: { metadata: { name: 'data-web-0', namespace: 'shop' }, spec: { accessModes: ['ReadWriteOnce'] } },
    })
    expect(pod!.value.spec).toMatchObject({
      volumes: [
        { name: 'tmp', emptyDir: {} },
        { name: 'data', persistentVolumeClaim: { claimName: 'data-web-0' } },
      ],
    })
  })

  it('PLUS-2 returns other objects unchanged', () => {
    const pod = manifest('Pod', {}, 'v1')
    expect(expandWorkload(pod)).toEqual([pod])
  })

  it.each([
    [{ replicas: -1, template }, 'spec.replicas is not a number from 0 to 100000'],
    [{ replicas: 1e9, template }, 'spec.replicas is not a number'],
    [{ replicas: '3', template }, 'spec.replicas is not a number'],
    [{ replicas: 3 }, 'the Deployment has no spec.template'],
  ])('PLUS-2 rejects a Deployment with %j', (spec, message) => {
    expect(() => expandWorkload(manifest('Deployment', spec))).toThrow(UsageError)
    expect(() => expandWorkload(manifest('Deployment', spec))).toThrow(`shop.yaml, document 1: ${message}`)
  })
})
