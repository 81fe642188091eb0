// Steps for `kubectl auth`, and for roles, bindings, and the tokens of service accounts.
import { expect } from 'vitest'
import type { Step } from './step.ts'

export const authSteps: readonly Step[] = [
  {
    name: 'auth can-i prints yes and exits with 0, or prints no and exits with 1',
    async run({ kubectl, viewer }) {
      expect(await kubectl.out('auth can-i delete persistentvolumes')).toContain('yes')
      expect(await viewer.out('auth can-i list persistentvolumeclaims')).toContain('yes')
      expect((await viewer.run('auth can-i create persistentvolumeclaims', { exit: 1 })).out).toContain('no')
      expect((await viewer.run('auth can-i get secrets', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --as checks another user',
    async run({ kubectl }) {
      expect((await kubectl.run('auth can-i create pvc --as=nobody', { exit: 1 })).out).toContain('no')
    },
  },
  {
    name: 'auth can-i --list prints the rules',
    async run({ kubectl }) {
      expect(await kubectl.out('auth can-i --list')).toMatch(/^\*\.\* +\[\] +\[\] +\[\*\]$/m)
    },
  },
  {
    name: 'auth whoami prints the user name and groups',
    needs: 'auth whoami',
    async run({ kubectl }) {
      const output = await kubectl.out('auth whoami')
      expect(output).toMatch(/^Username +stowage-admin$/m)
      expect(output).toMatch(/^Groups +\[system:masters system:authenticated\]$/m)
    },
  },
  {
    name: 'create role and rolebinding grant a user the rights of the role, in the namespace only',
    async run({ kubectl }) {
      await kubectl.out('create role claim-reader --verb=get,list --resource=persistentvolumeclaims')
      await kubectl.out('create rolebinding claim-readers --role=claim-reader --user=ann')
      await expect.poll(() => kubectl.run('auth can-i list pvc --as=ann', { exit: 0 })).toBeDefined()
      expect((await kubectl.run('auth can-i list pvc -n default --as=ann', { exit: 1 })).out).toContain('no')
      expect(await kubectl.out('auth can-i --list --as=ann')).toMatch(
        /^persistentvolumeclaims +\[\] +\[\] +\[get list\]$/m,
      )
      const { err } = await kubectl.run('delete pvc missing --as=ann', { exit: 1 })
      expect(err).toContain(
        'User "ann" cannot delete resource "persistentvolumeclaims" in API group "" in the namespace "shop"',
      )
      expect(await kubectl.out('get rolebinding claim-readers -o wide')).toMatch(/Role\/claim-reader +\S+ +ann/)
    },
  },
  {
    name: 'create clusterrole and clusterrolebinding grant a group rights in the whole cluster',
    async run({ kubectl }) {
      await kubectl.out('create clusterrole class-reader --verb=get,list --resource=storageclasses.storage.k8s.io')
      await kubectl.out('create clusterrolebinding class-readers --clusterrole=class-reader --group=team')
      await expect.poll(() => kubectl.run('auth can-i list sc --as=bob --as-group=team', { exit: 0 })).toBeDefined()
      expect((await kubectl.run('auth can-i delete sc --as=bob --as-group=team', { exit: 1 })).out).toContain('no')
      expect(await kubectl.out('describe clusterrole class-reader')).toContain('storageclasses.storage.k8s.io')
    },
  },
  {
    name: 'auth reconcile creates roles, adds missing rules and keeps others',
    async run({ kubectl, file }) {
      const role = (verbs: string) => `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reconciled, namespace: shop }
rules: [{ apiGroups: [''], resources: [pods], verbs: [${verbs}] }]
`
      const readVerbs = async () => (await kubectl.out('get role reconciled -o jsonpath={.rules[*].verbs[*]}')).trim()
      await kubectl.out(`auth reconcile -f ${await file('reconcile-1.yaml', role('get'))}`)
      expect(await readVerbs()).toBe('get')
      await kubectl.out(`auth reconcile -f ${await file('reconcile-2.yaml', role('list'))}`)
      expect((await readVerbs()).split(' ').sort()).toEqual(['get', 'list'])
    },
  },
  {
    name: 'a user cannot bind a role with rights that the user does not hold',
    async run({ kubectl }) {
      await kubectl.out('create rolebinding shop-admin --clusterrole=admin --user=carol')
      await expect.poll(() => kubectl.run('auth can-i create rolebindings --as=carol', { exit: 0 })).toBeDefined()
      await kubectl.out('create rolebinding readers-2 --role=claim-reader --user=dave --as=carol')
      const { err } = await kubectl.run(
        'create rolebinding take-over --clusterrole=cluster-admin --user=carol --as=carol',
        {
          exit: 1,
        },
      )
      expect(err).toContain('is attempting to grant RBAC permissions not currently held')
    },
  },
  {
    name: 'create serviceaccount and create token issue a token that authenticates the account until it is deleted',
    needs: 'create token',
    async run({ kubectl, anonymous }) {
      expect(await kubectl.out('create serviceaccount courier')).toContain('serviceaccount/courier created')
      await kubectl.out('create rolebinding couriers --clusterrole=view --serviceaccount=shop:courier')
      const token = (await kubectl.out('create token courier --duration=20m')).trim()
      const asCourier = `--token=${token}`
      expect(await anonymous.out(`get configmaps ${asCourier}`)).toBeDefined()
      const { err } = await anonymous.run(`get secrets ${asCourier}`, { exit: 1 })
      expect(err).toContain('User "system:serviceaccount:shop:courier" cannot list resource "secrets"')
      const vaultToken = (await kubectl.out('create token courier --audience=vault')).trim()
      expect((await anonymous.run(`get configmaps --token=${vaultToken}`, { exit: 1 })).err).toContain('Unauthorized')
      await kubectl.out('delete serviceaccount courier')
      expect((await anonymous.run(`get configmaps ${asCourier}`, { exit: 1 })).err).toContain('Unauthorized')
    },
  },
]
