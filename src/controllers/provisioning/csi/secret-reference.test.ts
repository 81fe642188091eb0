// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how classes write templates
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SecretPurpose } from './parameters.ts'
import { secretRefFor } from './secret-reference.ts'

const claim = { metadata: { name: 'orders', namespace: 'shop', annotations: { 'team.example/secret': 'team-a' } } }
const refFor = (parameters: Record<string, string>, purpose: SecretPurpose = 'provisioner-secret') =>
  secretRefFor(purpose, parameters, { volumeName: 'pvc-1', claim })
const of = (name: string, namespace: string, purpose = 'provisioner-secret') => ({
  [`csi.storage.k8s.io/${purpose}-name`]: name,
  [`csi.storage.k8s.io/${purpose}-namespace`]: namespace,
})

describe('secretRefFor', () => {
  it('PROV-16 returns the secret of the purpose, else the default, else undefined', () => {
    const parameters = { ...of('own', 'a'), ...of('shared', 'b', 'secret') }
    expect(refFor(parameters)).toEqual({ name: 'own', namespace: 'a' })
    expect(refFor(parameters, 'node-stage-secret')).toEqual({ name: 'shared', namespace: 'b' })
    expect(refFor({ tier: 'fast' })).toBeUndefined()
  })

  it('PROV-16 reads the old spelling, also mixed', () => {
    expect(refFor({ csiProvisionerSecretName: 'old', csiProvisionerSecretNamespace: 'a' })).toEqual({
      name: 'old',
      namespace: 'a',
    })
    expect(
      refFor({ csiProvisionerSecretName: 'old', 'csi.storage.k8s.io/provisioner-secret-namespace': 'new' }),
    ).toEqual({ name: 'old', namespace: 'new' })
    expect(refFor({ csiNodeStageSecretName: 'n', csiNodeStageSecretNamespace: 'a' }, 'node-stage-secret')).toBeDefined()
  })

  it('PROV-16 resolves templates; the namespace only from values that users do not choose', () => {
    expect(refFor(of('${pvc.namespace}.${pvc.name}.${pv.name}', '${pvc.namespace}'))).toEqual({
      name: 'shop.orders.pvc-1',
      namespace: 'shop',
    })
    expect(refFor(of("${pvc.annotations['team.example/secret']}", '${pv.name}'))).toEqual({
      name: 'team-a',
      namespace: 'pvc-1',
    })
  })

  it.each([
    [of('s', '${pvc.name}'), 'invalid tokens: ["pvc.name"]'],
    [of('s', "${pvc.annotations['team.example/secret']}"), 'invalid tokens'],
    [of('${pvc.uid}', 'a'), 'invalid tokens: ["pvc.uid"]'],
    [of('$HOME', 'a'), 'invalid tokens: ["$HOME"]'],
    [of("${pvc.annotations['missing']}", 'a'), 'invalid tokens'],
    [of('', 'a'), 'is empty'],
    [of('s', ''), 'is empty'],
    [{ 'csi.storage.k8s.io/provisioner-secret-name': 's' }, 'give name and namespace'],
    [{ ...of('s', 'a'), csiProvisionerSecretName: 'old' }, 'twice'],
    [of('Not_A_Name', 'a'), '"Not_A_Name" is not a valid secret name'],
    [of('s', 'a.b'), '"a.b" is not a valid namespace name'],
    [of('X${pvc.name}', 'a'), '"X${pvc.name}" resolved to "Xorders" which is not a valid secret name'],
  ])('PROV-16 rejects %j', (parameters, message) => {
    expect(() => refFor(parameters as Record<string, string>)).toThrowError(
      expect.objectContaining({ how: 'noChange', message: expect.stringContaining(message) }),
    )
  })

  it('PROV-16 returns a valid reference or throws, for any claim', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (name, namespace, template, value) => {
        const hostile = { metadata: { name, namespace, annotations: { k: value } } }
        try {
          const ref = secretRefFor('provisioner-secret', of(`a${template}\${pvc.name}`, '${pvc.namespace}'), {
            volumeName: 'pvc-1',
            claim: hostile,
          })
          expect(ref!.name).toMatch(/^[a-z0-9.-]{1,253}$/)
          expect(ref!.namespace).toMatch(/^[a-z0-9-]{1,63}$/)
        } catch (error) {
          expect(error).toMatchObject({ how: 'noChange' })
        }
      }),
    )
  })
})
