// Steps for the commands that change one object: edit, patch, replace, label, annotate, taint and cordon.
import { expect } from 'vitest'
import type { Step } from './step.ts'

const readField = async (kubectl: { out(command: string[]): Promise<string> }, resource: string, path: string) =>
  kubectl.out(['get', ...resource.split(' '), '-o', `jsonpath={${path}}`])

export const updateSteps: readonly Step[] = [
  {
    name: 'edit sends the changes of the editor',
    async run({ kubectl }) {
      const env = { KUBE_EDITOR: 'sed -i s/green/yellow/' }
      expect(await kubectl.out('edit cm settings', { env })).toBe('configmap/settings edited\n')
      expect(await readField(kubectl, 'cm settings', '.data.colour')).toBe('yellow')
    },
  },
  {
    name: 'edit without a change is cancelled',
    async run({ kubectl }) {
      const { out, err } = await kubectl.run('edit cm settings', { env: { KUBE_EDITOR: 'true' } })
      expect(out + err).toContain('Edit cancelled, no changes made.')
    },
  },
  {
    name: 'edit of an immutable field prints the reason and saves the edited file',
    async run({ kubectl }) {
      const env = { KUBE_EDITOR: 'sed -i s/nobody.example.com/other.example.com/' }
      const text = await kubectl.expectError('edit vac silver', { env })
      expect(text).toMatch(/volumeattributesclasses\.storage\.k8s\.io "silver" (is invalid|was not valid)/)
      expect(text).toContain('A copy of your changes has been stored')
    },
  },
  {
    name: 'patch supports strategic merge, JSON merge and JSON patches',
    async run({ kubectl }) {
      const patch = (type: string, text: string) => kubectl.out(['patch', 'cm', 'settings', '--type', type, '-p', text])
      expect(await patch('strategic', '{"data":{"shape":"round"}}')).toBe('configmap/settings patched\n')
      expect(await patch('merge', '{"data":{"shape":null,"weight":"1"}}')).toBe('configmap/settings patched\n')
      expect(await patch('json', '[{"op":"replace","path":"/data/weight","value":"2"}]')).toBe(
        'configmap/settings patched\n',
      )
      expect((await kubectl.json('get cm settings')).data).toEqual({ colour: 'yellow', size: 'large', weight: '2' })
      expect(await patch('merge', '{"data":{"weight":"2"}}')).toBe('configmap/settings patched (no change)\n')
    },
  },
  {
    name: 'patch --type=json fails if a test operation fails or a path does not exist',
    async run({ kubectl }) {
      const patch = (text: string) => kubectl.expectError(['patch', 'cm', 'settings', '--type', 'json', '-p', text])
      expect(await patch('[{"op":"test","path":"/data/weight","value":"9"}]')).toMatch(/weight/)
      expect(await patch('[{"op":"remove","path":"/data/nowhere"}]')).toMatch(/nowhere/)
    },
  },
  {
    name: 'patch with a delete directive removes one item of a merged list',
    async run({ kubectl }) {
      const patch =
        '{"secrets":[{"$patch":"delete","name":"b"}],"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/b"]}}'
      await kubectl.out(['patch', 'sa', 'applied', '-p', patch])
      const { secrets, metadata } = await kubectl.json('get sa applied')
      expect(secrets.map(({ name }: any) => name).sort()).toEqual(['c', 'unmanaged'])
      expect(metadata.finalizers).toBeUndefined()
    },
  },
  {
    name: 'patch --subresource=status changes the status, and patch without it does not',
    needs: '--subresource',
    async run({ kubectl }) {
      const status = '{"status":{"phase":"Bound","capacity":{"storage":"10Gi"},"accessModes":["ReadWriteOnce"]}}'
      await kubectl.out(['patch', 'pvc', 'orders', '-p', status])
      expect(await readField(kubectl, 'pvc orders', '.status.phase')).toBe('Pending')
      await kubectl.out(['patch', 'pvc', 'orders', '--subresource=status', '-p', status])
      expect(await readField(kubectl, 'pvc orders', '.status.phase')).toBe('Bound')
      await kubectl.out([
        'patch',
        'pvc',
        'orders',
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":"Pending","capacity":null,"accessModes":null}}',
      ])
      expect(await kubectl.json('get pvc orders --subresource=status')).toMatchObject({ status: { phase: 'Pending' } })
    },
  },
  {
    name: 'replace overwrites the content and keeps the uid',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {only: this}\n'
      const uid = await readField(kubectl, 'cm settings', '.metadata.uid')
      expect(await kubectl.out('replace -f -', { stdin })).toBe('configmap/settings replaced\n')
      expect((await kubectl.json('get cm settings')).data).toEqual({ only: 'this' })
      expect(await readField(kubectl, 'cm settings', '.metadata.uid')).toBe(uid)
    },
  },
  {
    name: 'replace --force deletes and recreates the object',
    async run({ kubectl, file }) {
      const path = await file(
        'force.yaml',
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: green}\n',
      )
      const uid = await readField(kubectl, 'cm settings', '.metadata.uid')
      expect(await kubectl.out(['replace', '--force', '-f', path])).toContain('configmap/settings replaced\n')
      expect(await readField(kubectl, 'cm settings', '.metadata.uid')).not.toBe(uid)
    },
  },
  {
    name: 'replace of a stale copy fails with a conflict',
    async run({ kubectl, file }) {
      const path = await file('stale.yaml', await kubectl.out('get cm settings -o yaml'))
      await kubectl.out('label cm settings touched=yes')
      expect(await kubectl.expectError(['replace', '-f', path])).toMatch(
        /^Error from server \(Conflict\): error when replacing ".*": Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again\n$/,
      )
    },
  },
  {
    name: 'label and annotate add and remove values, and change them only with --overwrite',
    async run({ kubectl }) {
      for (const [verb, metadataField, message] of [
        ['label', 'labels', /^storageclass.storage.k8s.io\/fast labeled\n$/],
        ['annotate', 'annotations', /^storageclass.storage.k8s.io\/fast annotated?\n$/], // kubectl 1.27 prints "annotate"
      ] as const) {
        expect(await kubectl.out(`${verb} sc fast note=1`)).toMatch(message)
        await kubectl.expectError(`${verb} sc fast note=2`)
        await kubectl.out(`${verb} sc fast note=2 --overwrite`)
        expect(await readField(kubectl, 'sc fast', `.metadata.${metadataField}.note`)).toBe('2')
        await kubectl.out(`${verb} sc fast note-`)
        expect(await readField(kubectl, 'sc fast', `.metadata.${metadataField}.note`)).toBe('')
      }
      await kubectl.out('label pvc --all inspected=yes')
      expect(await kubectl.out('get pvc -l inspected=yes -o name')).toContain('persistentvolumeclaim/archive')
    },
  },
  {
    name: 'taint, cordon and uncordon change a node',
    async run({ kubectl }) {
      expect(await kubectl.out('taint node node-a disk=full:NoSchedule')).toBe('node/node-a tainted\n')
      expect((await kubectl.json('get node node-a')).spec.taints).toMatchObject([
        { key: 'disk', value: 'full', effect: 'NoSchedule' },
      ])
      expect(await kubectl.out('cordon node-a')).toBe('node/node-a cordoned\n')
      expect(await kubectl.out('get nodes')).toContain('Ready,SchedulingDisabled')
      expect(await kubectl.out('uncordon node-a')).toBe('node/node-a uncordoned\n')
      expect(await kubectl.out('taint node node-a disk-')).toBe('node/node-a untainted\n')
      expect((await kubectl.json('get node node-a')).spec).toEqual({})
    },
  },
]
