// Steps for the commands that use discovery and OpenAPI: explain, api-resources, api-versions, cluster-info and
// version.
import { expect } from 'vitest'
import { parseTable } from './parse-table.ts'
import { linesOf, type Step } from './step.ts'

export const discoverySteps: readonly Step[] = [
  {
    name: 'explain prints kinds and fields',
    async run({ kubectl }) {
      const output = await kubectl.out('explain pvc')
      expect(output).toMatch(/^KIND: +PersistentVolumeClaim\nVERSION: +v1\n/)
      for (const field of ['metadata', 'spec', 'status']) expect(output).toMatch(new RegExp(`^ +${field}\\s+<`, 'm'))
      expect(await kubectl.out('explain pvc.spec.volumeAttributesClassName')).toMatch(
        /^FIELD: +volumeAttributesClassName <string>/m,
      )
      expect(await kubectl.out('explain storageclass')).toMatch(/^ +provisioner\s+<string> -required-/m)
      expect(await kubectl.out('explain vac')).toMatch(/^ +parameters\s+<map\[string\]string>/m)
    },
  },
  {
    name: 'explain --recursive prints nested fields',
    async run({ kubectl }) {
      const output = await kubectl.out('explain pvc.spec --recursive')
      expect(output).toMatch(/^ +accessModes\s+<\[\]string>/m)
      expect(output).toMatch(/^ +requests\s+<map\[string\]/m)
    },
  },
  {
    name: 'explain of a field that does not exist fails',
    async run({ kubectl }) {
      expect(await kubectl.expectError('explain pvc.spec.nowhere')).toContain('field "nowhere" does not exist')
    },
  },
  {
    name: 'api-resources lists kinds with their short names and scopes',
    async run({ kubectl }) {
      const { rows } = parseTable(await kubectl.out('api-resources --cached=false'))
      const resourceTexts = rows.map((row) => [row.NAME, row.SHORTNAMES, row.NAMESPACED, row.KIND].join(' '))
      for (const resourceText of [
        'configmaps cm true ConfigMap',
        'events ev true Event',
        'limitranges limits true LimitRange',
        'namespaces ns false Namespace',
        'nodes no false Node',
        'persistentvolumeclaims pvc true PersistentVolumeClaim',
        'persistentvolumes pv false PersistentVolume',
        'pods po true Pod',
        'resourcequotas quota true ResourceQuota',
        'secrets  true Secret',
        'serviceaccounts sa true ServiceAccount',
        'leases  true Lease',
        'csidrivers  false CSIDriver',
        'csinodes  false CSINode',
        'csistoragecapacities  true CSIStorageCapacity',
        'priorityclasses pc false PriorityClass',
        'storageclasses sc false StorageClass',
        'volumeattachments  false VolumeAttachment',
        'volumeattributesclasses vac false VolumeAttributesClass',
      ]) {
        expect(resourceTexts).toContain(resourceText)
      }
      expect(linesOf(await kubectl.out('api-resources --namespaced=false -o name'))).toContain(
        'storageclasses.storage.k8s.io',
      )
    },
  },
  {
    name: 'api-versions lists group versions',
    async run({ kubectl }) {
      expect(linesOf(await kubectl.out('api-versions'))).toEqual(
        expect.arrayContaining([
          'coordination.k8s.io/v1',
          'events.k8s.io/v1',
          'storage.k8s.io/v1',
          'storage.k8s.io/v1alpha1',
          'storage.k8s.io/v1beta1',
          'v1',
        ]),
      )
    },
  },
  {
    name: 'cluster-info prints the address of the server',
    async run({ kubectl }) {
      const { out, err } = await kubectl.run('cluster-info')
      expect(out).toMatch(/Kubernetes (control plane|master).* is running at .*https:\/\/127\.0\.0\.1:\d+/)
      expect(err).toBe('')
    },
  },
  {
    name: 'version prints the Kubernetes version of the API',
    async run({ kubectl }) {
      const { serverVersion } = JSON.parse((await kubectl.run('version -o json')).out)
      expect(serverVersion).toMatchObject({ major: '1', gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/) })
    },
  },
]
