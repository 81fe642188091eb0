// Entry point of the controllers that give every namespace what its pods need to use the API: the ServiceAccount `default` and
// the ConfigMap `kube-root-ca.crt`.
export { createDefaultAccountController } from './default-account-controller.ts'
export { createRootCaController } from './root-ca-controller.ts'
