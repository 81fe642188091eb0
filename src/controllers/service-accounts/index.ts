// Public exports of the controllers that create the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` in every
// namespace, and of the controller that fills the Secrets of account tokens.
export { createAccountTokenController } from './account-token-controller.ts'
export { createDefaultAccountController } from './default-account-controller.ts'
export { createRootCaController } from './root-ca-controller.ts'
