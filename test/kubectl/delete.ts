// Steps for `kubectl delete`: by name, file and selector, with finalizers, and a namespace with its content.
import { expect } from 'vitest'
import { linesOf, type Step } from './step.ts'

const configMaps = (...names: string[]) =>
  names
    .map((name) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, labels: {batch: "1"}}\n`)
    .join('---\n')

/** A scheduled pod that uses the claim `orders`. */
const SCHEDULED_POD = `
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  nodeName: some-node
  containers: [{name: c, image: registry.example.com/c:1}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: orders}}]
`

export const deleteSteps: readonly Step[] = [
  {
    name: 'delete --dry-run=server deletes nothing',
    async run({ kubectl }) {
      expect(await kubectl.out('delete cm one --dry-run=server')).toMatch(
        /^configmap "one" deleted.*\(server dry run\)\n$/,
      )
      await kubectl.out('get cm one')
    },
  },
  {
    name: 'delete accepts one name, several names, and a file',
    async run({ kubectl, file }) {
      const path = await file('three.yaml', configMaps('a', 'b', 'c'))
      await kubectl.out(['create', '-f', path])
      expect(await kubectl.out('delete cm a')).toMatch(/^configmap "a" deleted/)
      expect(linesOf(await kubectl.out('delete cm b c'))).toHaveLength(2)
      expect(await kubectl.expectError('delete cm a')).toBe('Error from server (NotFound): configmaps "a" not found\n')
      expect(await kubectl.out('delete cm a --ignore-not-found')).toBe('')
      await kubectl.out(['create', '-f', path])
      expect(linesOf(await kubectl.out(['delete', '-f', path]))).toHaveLength(3)
    },
  },
  {
    name: 'delete -l deletes the selected objects only, and --all deletes all',
    async run({ kubectl }) {
      await kubectl.out('create -f -', { stdin: configMaps('a', 'b') })
      expect(linesOf(await kubectl.out('delete cm -l batch=1'))).toHaveLength(2)
      await kubectl.out('get cm settings')
      const names = linesOf(await kubectl.out('get cm -o name'))
      expect(linesOf(await kubectl.out('delete cm --all'))).toHaveLength(names.length)
      expect(await kubectl.out('get cm -o name')).toBe('')
    },
  },
  {
    name: 'delete --cascade accepts background, foreground and orphan',
    async run({ kubectl }) {
      await kubectl.out('create -f -', { stdin: configMaps('back', 'fore', 'orphan') })
      expect(await kubectl.out('delete cm back --cascade=background')).toMatch(/^configmap "back" deleted/)
      await kubectl.out('delete cm fore --cascade=foreground --wait=false')
      await kubectl.out('delete cm orphan --cascade=orphan --wait=false')
    },
  },
  {
    name: 'delete waits until the last finalizer is removed',
    async run({ kubectl }) {
      const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n'
      await kubectl.out('create -f -', { stdin })
      const deletion = kubectl.out('delete cm held --timeout=60s')
      await kubectl.out('delete cm held --wait=false') // the deletion timestamp is set either way
      expect((await kubectl.json('get cm held')).metadata.deletionTimestamp).toBeTruthy()
      await kubectl.out(['patch', 'cm', 'held', '--type=json', '-p', '[{"op":"remove","path":"/metadata/finalizers"}]'])
      expect(await deletion).toMatch(/^configmap "held" deleted/)
      await kubectl.expectError('get cm held')
    },
  },
  {
    name: 'delete of a claim in use leaves it Terminating until its pod is deleted',
    async run({ kubectl }) {
      await kubectl.out('create -f -', { stdin: SCHEDULED_POD })
      await kubectl.out('delete pvc orders --wait=false')
      expect(await kubectl.out('get pvc orders')).toMatch(/^orders +Terminating /m)
      await kubectl.out('delete pod user --grace-period=0 --force')
      await kubectl.out('delete pvc orders --ignore-not-found --timeout=60s')
      await kubectl.expectError('get pvc orders')
    },
  },
  {
    name: 'delete namespace deletes the namespace and its content',
    async run({ kubectl }) {
      const stdin = `apiVersion: v1\nkind: Namespace\nmetadata: {name: doomed}\n---\n${configMaps('inside').replace('name: inside', 'name: inside, namespace: doomed')}`
      await kubectl.out('create -f - -n doomed', { stdin })
      expect(await kubectl.out('delete namespace doomed --timeout=60s')).toBe('namespace "doomed" deleted\n')
      await kubectl.expectError('get namespace doomed')
      expect(await kubectl.expectError('get cm inside -n doomed')).toContain('not found')
    },
  },
  {
    name: 'delete of a built-in namespace is forbidden',
    async run({ kubectl }) {
      expect(await kubectl.expectError('delete namespace kube-system')).toContain(
        'Error from server (Forbidden): namespaces "kube-system" is forbidden: this namespace may not be deleted',
      )
    },
  },
]
