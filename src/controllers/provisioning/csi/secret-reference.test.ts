// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how classes write templates
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SecretPurpose } from './parameters.ts'
import { resolveSecretRef } from './secret-reference.ts'

const claim = { metadata: { name: 'orders', namespace: 'shop', annotations: { 'team.example/secret': 'team-a' } } }
const resolve = (parameters: Record<string, string>, purpose: SecretPurpose = 'provisioner-secret') =>
  resolveSecretRef(purpose, parameters, { volumeName: 'pvc-1', claim })
const secretParameters = (name: string, namespace: string, purpose = 'provisioner-secret') => ({
  [`csi.storage.k8s.io/${purpose}-name`]: name,
  [`csi.storage.k8s.io/${purpose}-namespace`]: namespace,
})

describe('resolveSecretRef', () => {
  it('PROV-16 returns the secret of the purpose, the default secret or undefined', () => {
    const parameters = { ...secretParameters('own', 'a'), ...secretParameters('shared', 'b', 'secret') }
    expect(resolve(parameters)).toEqual({ name: 'own', namespace: 'a' })
    expect(resolve(parameters, 'node-stage-secret')).toEqual({ name: 'shared', namespace: 'b' })
    expect(resolve({ tier: 'fast' })).toBeUndefined()
  })

  it('PROV-16 accepts deprecated keys, alone or combined with current keys', () => {
    expect(resolve({ csiProvisionerSecretName: 'old', csiProvisionerSecretNamespace: 'a' })).toEqual({
      name: 'old',
      namespace: 'a',
    })
    expect(
      resolve({ csiProvisionerSecretName: 'old', 'csi.storage.k8s.io/provisioner-secret-namespace': 'new' }),
    ).toEqual({ name: 'old', namespace: 'new' })
    expect(
      resolve({ csiNodeStageSecretName: 'n', csiNodeStageSecretNamespace: 'a' }, 'node-stage-secret'),
    ).toBeDefined()
  })

  it('PROV-16 resolves templates in the name and the namespace', () => {
    expect(resolve(secretParameters('${pvc.namespace}.${pvc.name}.${pv.name}', '${pvc.namespace}'))).toEqual({
      name: 'shop.orders.pvc-1',
      namespace: 'shop',
    })
    expect(resolve(secretParameters("${pvc.annotations['team.example/secret']}", '${pv.name}'))).toEqual({
      name: 'team-a',
      namespace: 'pvc-1',
    })
  })

  it.each([
    [secretParameters('s', '${pvc.name}'), 'invalid tokens: ["pvc.name"]'],
    [secretParameters('s', "${pvc.annotations['team.example/secret']}"), 'invalid tokens'],
    [secretParameters('${pvc.uid}', 'a'), 'invalid tokens: ["pvc.uid"]'],
    [secretParameters('$HOME', 'a'), 'invalid tokens: ["$HOME"]'],
    [secretParameters("${pvc.annotations['missing']}", 'a'), 'invalid tokens'],
    [secretParameters('', 'a'), 'is empty'],
    [secretParameters('s', ''), 'is empty'],
    [{ 'csi.storage.k8s.io/provisioner-secret-name': 's' }, 'set name and namespace'],
    [{ ...secretParameters('s', 'a'), csiProvisionerSecretName: 'old' }, 'twice'],
    [secretParameters('Not_A_Name', 'a'), '"Not_A_Name" is not a valid secret name'],
    [secretParameters('s', 'a.b'), '"a.b" is not a valid namespace name'],
    [secretParameters('X${pvc.name}', 'a'), '"X${pvc.name}" resolved to "Xorders" which is not a valid secret name'],
  ])('PROV-16 rejects %j', (parameters, message) => {
    expect(() => resolve(parameters as Record<string, string>)).toThrowError(
      expect.objectContaining({ failure: 'noChange', message: expect.stringContaining(message) }),
    )
  })

  it('PROV-16 returns a valid reference or throws for any claim', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (name, namespace, template, value) => {
        const anyClaim = { metadata: { name, namespace, annotations: { k: value } } }
        try {
          const ref = resolveSecretRef(
            'provisioner-secret',
            secretParameters(`a${template}\${pvc.name}`, '${pvc.namespace}'),
            {
              volumeName: 'pvc-1',
              claim: anyClaim,
            },
          )
          expect(ref!.name).toMatch(/^[a-z0-9.-]{1,253}$/)
          expect(ref!.namespace).toMatch(/^[a-z0-9-]{1,63}$/)
        } catch (error) {
          expect(error).toMatchObject({ failure: 'noChange' })
        }
      }),
    )
  })
})
