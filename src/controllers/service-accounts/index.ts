// Entry point of the controllers that give every namespace what its pods need to use the API, the ServiceAccount `default` and
// the ConfigMap `kube-root-ca.crt`, and of the controller of the tokens in Secrets.
export { createAccountTokenController } from './account-token-controller.ts'
export { createDefaultAccountController } from './default-account-controller.ts'
export { createRootCaController } from './root-ca-controller.ts'
