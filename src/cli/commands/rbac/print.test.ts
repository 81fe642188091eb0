import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createServerFixture, type Json } from '../../../apiserver/server.fixture.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import { runCommandLine } from '../../run.ts'
import { featuresOf, PRINTED_COMPONENTS } from './select-rules.ts'

async function print(...args: string[]) {
  let output = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', 'rbac', 'print', ...args], {
    clock: manualClock(),
    random: () => 0.5,
    signal: new AbortController().signal,
    write: (text) => {
      output += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, err, out: output, objects: parseAllDocuments(output).map((document) => document.toJS() as Json) }
}

/** Returns the verbs that a role grants on a resource. */
const verbsOn = ({ rules }: Json, group: string, resource: string): string[] =>
  rules
    .filter(({ apiGroups, resources }: Json) => apiGroups.includes(group) && resources.includes(resource))
    .flatMap(({ verbs }: Json) => verbs)

describe('stowage rbac print', () => {
  it("SYS-9 prints a cluster role, and a role in the component's namespace", async () => {
    const { code, objects } = await print('--component', 'provisioner', '--namespace', 'csi')
    expect(code).toBe(0)
    expect(objects.map(({ kind, metadata }) => [kind, metadata])).toEqual([
      ['ClusterRole', { name: 'stowage-provisioner' }],
      ['Role', { name: 'stowage-provisioner', namespace: 'csi' }],
    ])
    const [clusterRole, role] = objects
    expect(verbsOn(clusterRole, '', 'persistentvolumes')).toEqual(['get', 'list', 'watch', 'create', 'patch', 'delete'])
    expect(verbsOn(clusterRole, '', 'secrets')).toEqual(['get'])
    expect(verbsOn(role, 'coordination.k8s.io', 'leases')).toEqual(['get', 'create', 'update', 'patch'])
    expect(verbsOn(clusterRole, 'coordination.k8s.io', 'leases')).toEqual([])
  })

  it('SYS-9 prints the rules of the named features only', async () => {
    const { objects: objectsWithoutFeatures } = await print('--component', 'provisioner', '--features', '')
    expect(objectsWithoutFeatures.map(({ kind }) => kind)).toEqual(['ClusterRole'])
    expect(verbsOn(objectsWithoutFeatures[0], 'storage.k8s.io', 'csinodes')).toEqual([])
    const { objects } = await print('--component', 'provisioner', '--features', 'topology, leader-election')
    expect(objects.map(({ kind }) => kind)).toEqual(['ClusterRole', 'Role'])
    expect(verbsOn(objects[0], 'storage.k8s.io', 'csinodes')).toEqual(['list', 'watch'])
    expect(verbsOn(objects[0], '', 'secrets')).toEqual([])
  })

  it('SYS-9 prints the rules of the named controllers, or of those that run by default', async () => {
    const { objects: allObjects } = await print('--component', 'controllers')
    expect(verbsOn(allObjects[0], '*', '*')).toEqual(['get', 'list', 'watch', 'patch', 'delete'])
    const { objects } = await print('--component', 'controllers', '--features', 'binding,transactions')
    expect(verbsOn(objects[0], '*', '*')).toEqual([])
    expect(verbsOn(objects[0], '', 'persistentvolumes/status')).toEqual(['patch'])
    expect(verbsOn(objects[0], 'stowage.dev', 'commits')).toEqual(['create'])
  })

  it('SYS-9 prints the rules of the named controllers of a sidecar, or of all of them', async () => {
    const { objects: allObjects } = await print('--component', 'sidecar', '--namespace', 'csi')
    expect(verbsOn(allObjects[0], '', 'persistentvolumes')).toEqual([
      'get',
      'list',
      'watch',
      'create',
      'patch',
      'delete',
    ])
    expect(verbsOn(allObjects[0], 'storage.k8s.io', 'volumeattachments/status')).toEqual(['patch'])
    expect(verbsOn(allObjects[1], 'coordination.k8s.io', 'leases')).toEqual(['get', 'create', 'update', 'patch'])
    const { objects } = await print('--component', 'sidecar', '--features', 'attacher,resizer')
    expect(objects.map(({ kind }) => kind)).toEqual(['ClusterRole'])
    expect(verbsOn(objects[0], '', 'persistentvolumes')).toEqual(['get', 'list', 'watch', 'patch'])
  })

  it.each(PRINTED_COMPONENTS)(
    'SYS-9 prints roles, account and bindings for %s that the server accepts',
    async (name) => {
      const api = await createServerFixture({ usesRbac: true })
      const { objects } = await print('--component', name, '--service-account', 'worker', '--name', 'worker-role')
      expect(objects.map(({ kind }) => kind)).toContain('ClusterRoleBinding')
      const plurals: Record<string, string> = { ServiceAccount: 'serviceaccounts' }
      for (const { apiVersion, kind, metadata, ...object } of objects) {
        const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
        const namespace = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
        const path = `${prefix}${namespace}/${plurals[kind] ?? `${kind.toLowerCase()}s`}`
        const { status, json } = await api.post(path, { apiVersion, kind, metadata, ...object })
        expect(status, JSON.stringify(json)).toBe(201)
      }
      const user = { 'impersonate-user': 'system:serviceaccount:kube-system:worker' }
      const { rules } = objects.find(({ kind }) => kind === 'ClusterRole')!
      const { apiGroups, resources, verbs } = rules[0]
      const { json } = await api.post(
        '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        { spec: { resourceAttributes: { group: apiGroups[0], resource: resources[0], verb: verbs[0] } } },
        user,
      )
      expect(json.status.allowed).toBe(true)
      await api.store.close()
    },
  )

  it('SYS-12 rejects unknown components and features, and lists those that exist', async () => {
    expect(await print('--component', 'provisoner')).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        "stowage: option '--component <name>' argument 'provisoner' is invalid. Allowed choices are " +
          `${PRINTED_COMPONENTS.join(', ')}.`,
      ),
    })
    expect(await print('--component', 'resizer', '--features', 'topology')).toMatchObject({
      code: 2,
      err:
        'stowage: --features: unknown feature "topology" of the component "resizer". It has: ' +
        `${featuresOf('resizer').join(', ')}.\n`,
    })
    expect((await print()).err).toContain("required option '--component <name>' not specified")
    expect((await print('--component')).err).toContain('(stowage rbac print --help lists its flags)')
  })
})
