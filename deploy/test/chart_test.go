// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
)

// strict refuses fields that the types of Kubernetes do not have.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

const chartDir = "../helm/iggy-connect-go"

// values are those of an installation with one connector of each kind, and more of them.
func values(more map[string]any) map[string]any {
	all := map[string]any{
		"iggy": map[string]any{"password": "p\"w"},
		"api":  map[string]any{"key": "k"},
		"sources": map[string]any{"connectors": map[string]any{
			"orders": "enabled = true\nname = \"Orders\"\n",
		}},
		"sinks": map[string]any{"connectors": map[string]any{
			"print.all": "enabled = true\nname = \"Print\"\n",
		}},
	}
	return chartutil.CoalesceTables(more, all)
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(t *testing.T, given map[string]any) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "r", Namespace: "n"}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// objects renders the chart; every document must be an object that Kubernetes knows.
func objects(t *testing.T, given map[string]any) []runtime.Object {
	t.Helper()
	files, err := render(t, given)
	if err != nil {
		t.Fatal(err)
	}
	var found []runtime.Object
	for name, content := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range releaseutil.SplitManifests(content) {
			if !strings.Contains(document, "kind:") { // only comments
				continue
			}
			object, _, err := strict.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			found = append(found, object)
		}
	}
	return found
}

// only returns the objects of a type, and wants a number of them.
func only[T runtime.Object](t *testing.T, all []runtime.Object, n int) []T {
	t.Helper()
	var found []T
	for _, object := range all {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	if len(found) != n {
		t.Fatalf("got %d of %T, want %d", len(found), *new(T), n)
	}
	return found
}

func TestChart_given_both_kinds_when_rendered_should_run_sources_once_and_sinks_in_replicas(t *testing.T) {
	all := objects(t, values(map[string]any{"sinks": map[string]any{"replicas": 3}}))
	sources, sinks := only[*appsv1.StatefulSet](t, all, 1)[0], only[*appsv1.Deployment](t, all, 1)[0]
	if *sources.Spec.Replicas != 1 || *sinks.Spec.Replicas != 3 {
		t.Errorf("%d sources, %d sinks", *sources.Spec.Replicas, *sinks.Spec.Replicas)
	}
	if claims := sources.Spec.VolumeClaimTemplates; len(claims) != 1 || claims[0].Name != "state" || claims[0].Spec.Resources.Requests.Storage().String() != "1Gi" {
		t.Errorf("state is kept in %v", claims)
	}
	budget := only[*policyv1.PodDisruptionBudget](t, all, 1)[0]
	selected := labels.SelectorFromSet(budget.Spec.Selector.MatchLabels)
	if !selected.Matches(labels.Set(sinks.Spec.Template.Labels)) || selected.Matches(labels.Set(sources.Spec.Template.Labels)) {
		t.Errorf("the budget selects %v", selected)
	}
	for _, service := range only[*corev1.Service](t, all, 2) {
		selected := labels.SelectorFromSet(service.Spec.Selector)
		of := map[string]labels.Set{"r-iggy-connect-go-sources": sources.Spec.Template.Labels, "r-iggy-connect-go-sinks": sinks.Spec.Template.Labels}
		for name, pod := range of {
			if selected.Matches(pod) != (service.Name == name) {
				t.Errorf("service %s selects %v", service.Name, selected)
			}
		}
	}
	files := map[string]string{}
	for _, config := range only[*corev1.ConfigMap](t, all, 2) {
		for name, text := range config.Data {
			files[config.Name+"/"+name] = text
			if problems := validation.IsConfigMapKey(name); problems != nil {
				t.Errorf("%s: %v", name, problems)
			}
		}
	}
	if files["r-iggy-connect-go-sources/orders_source.toml"] != "enabled = true\nname = \"Orders\"" ||
		files["r-iggy-connect-go-sinks/print.all_sink.toml"] != "enabled = true\nname = \"Print\"" || len(files) != 2 {
		t.Errorf("files %v", files)
	}
}

// What the pods need to have for the image: see Dockerfile and configs/image.
func TestChart_given_pods_when_rendered_should_fit_the_image(t *testing.T) {
	all := objects(t, values(map[string]any{"connectorSecret": "mine"}))
	templates := map[string]corev1.PodTemplateSpec{
		"sources": only[*appsv1.StatefulSet](t, all, 1)[0].Spec.Template,
		"sinks":   only[*appsv1.Deployment](t, all, 1)[0].Spec.Template,
	}
	for role, template := range templates {
		pod, container := template.Spec, template.Spec.Containers[0]
		if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 10001 || *pod.SecurityContext.FSGroup != 10001 {
			t.Errorf("%s: pod runs as %v", role, pod.SecurityContext)
		}
		if *container.SecurityContext.AllowPrivilegeEscalation || !*container.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: container may %v", role, container.SecurityContext)
		}
		if container.LivenessProbe.HTTPGet.Path != "/health/live" || container.ReadinessProbe.HTTPGet.Path != "/health/ready" {
			t.Errorf("%s: probes %v, %v", role, container.LivenessProbe, container.ReadinessProbe)
		}
		if *pod.TerminationGracePeriodSeconds <= 30 { // shutdown.timeout
			t.Errorf("%s: killed after %d s", role, *pod.TerminationGracePeriodSeconds)
		}
		mounted := map[string]string{}
		for _, mount := range container.VolumeMounts {
			mounted[mount.MountPath] = mount.Name
		}
		want := map[string]string{
			"/etc/iggy-connect-go/connectors": "connectors", "/var/lib/iggy-connect-go": "state",
			"/etc/iggy-connect-go/secrets": "secrets", "/tmp": "tmp",
		}
		for path, name := range want {
			if mounted[path] != name {
				t.Errorf("%s: %s is %q", role, path, mounted[path])
			}
		}
	}
}

// The program itself says whether it knows the variables.
func TestChart_given_its_variables_when_checked_by_the_program_should_be_known(t *testing.T) {
	all := objects(t, values(map[string]any{"env": map[string]any{"IGGY_CONNECTORS_SUPERVISOR_MAX_BACKOFF": "5s"}}))
	var env []string
	for _, variable := range only[*appsv1.Deployment](t, all, 1)[0].Spec.Template.Spec.Containers[0].Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = secretValue(t, all, variable.ValueFrom.SecretKeyRef)
		}
		env = append(env, variable.Name+"="+value)
	}
	if !slices.Contains(env, `IGGY_CONNECTORS_IGGY_PASSWORD=p"w`) || !slices.Contains(env, "IGGY_CONNECTORS_HTTP_API_KEY=k") {
		t.Errorf("variables %v", env)
	}
	checkConfiguration(t, t.TempDir(), env)
}

func secretValue(t *testing.T, all []runtime.Object, reference *corev1.SecretKeySelector) string {
	t.Helper()
	for _, secret := range only[*corev1.Secret](t, all, 2) {
		if value, ok := secret.StringData[reference.Key]; ok && secret.Name == reference.Name {
			return value
		}
	}
	t.Fatalf("no secret has %v", reference)
	return ""
}

// checkConfiguration lets the program check connector files under the configuration of the image,
// with variables; it may not object to anything.
func checkConfiguration(t *testing.T, connectors string, env []string) {
	t.Helper()
	program, err := filepath.Abs("../../build/iggy-connect-go")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run 'make build plugins' first", err)
	}
	config, err := filepath.Abs("../../configs/image/config.toml")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "check", "--config", config)
	command.Dir = t.TempDir()
	command.Env = append(env, "IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR="+connectors)
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "errors: 0, warnings: 0") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestChart_given_secrets_of_ones_own_when_rendered_should_make_none(t *testing.T) {
	all := objects(t, values(map[string]any{
		"iggy": map[string]any{"existingSecret": "mine"},
		"api":  map[string]any{"existingSecret": "mine-too"},
	}))
	only[*corev1.Secret](t, all, 0)
	for _, variable := range only[*appsv1.Deployment](t, all, 1)[0].Spec.Template.Spec.Containers[0].Env {
		if from := variable.ValueFrom; from != nil && !strings.HasPrefix(from.SecretKeyRef.Name, "mine") {
			t.Errorf("%s is taken from %s", variable.Name, from.SecretKeyRef.Name)
		}
	}
}

func TestChart_given_one_kind_alone_when_rendered_should_run_only_that(t *testing.T) {
	given := values(nil)
	delete(given, "sources")
	all := objects(t, given)
	only[*appsv1.StatefulSet](t, all, 0)
	only[*corev1.Service](t, all, 1)
	only[*appsv1.Deployment](t, all, 1)
}

// A pod reads the secrets of the chart once, as variables.
func TestChart_given_another_key_when_rendered_should_replace_the_pods(t *testing.T) {
	annotations := func(key string) string {
		all := objects(t, values(map[string]any{"api": map[string]any{"key": key}}))
		return fmt.Sprint(only[*appsv1.Deployment](t, all, 1)[0].Spec.Template.Annotations)
	}
	if annotations("a") == annotations("b") || annotations("a") != annotations("a") {
		t.Error("the pods do not follow the key")
	}
}

func TestChart_given_another_configuration_when_rendered_should_replace_the_pods(t *testing.T) {
	checksum := func(text string) string {
		all := objects(t, values(map[string]any{"sinks": map[string]any{"connectors": map[string]any{"print.all": text}}}))
		return only[*appsv1.Deployment](t, all, 1)[0].Spec.Template.Annotations["checksum/connectors"]
	}
	if one, other := checksum("a = 1"), checksum("a = 2"); one == other || one == "" || one != checksum("a = 1") {
		t.Errorf("checksums %s, %s", one, other)
	}
}

func TestChart_given_wrong_values_when_rendered_should_say_what_is_wrong(t *testing.T) {
	for name, given := range map[string]struct {
		values map[string]any
		says   string
	}{
		"no password":      {map[string]any{"iggy": map[string]any{"password": ""}}, "set iggy.password"},
		"no API key":       {map[string]any{"api": map[string]any{"key": ""}}, "set api.key"},
		"unknown value":    {map[string]any{"sink": map[string]any{}}, "sink"},
		"no port":          {map[string]any{"iggy": map[string]any{"address": "iggy"}}, "address"},
		"many sources":     {map[string]any{"sources": map[string]any{"replicas": 2}}, "replicas"},
		"key that is none": {map[string]any{"sinks": map[string]any{"connectors": map[string]any{"a/b": "x"}}}, "a/b"},
	} {
		if _, err := render(t, values(given.values)); err == nil || !strings.Contains(err.Error(), given.says) {
			t.Errorf("%s: got %v, want %q in it", name, err, given.says)
		}
	}
}

// The version of the chart is that of the project.
func TestChart_given_its_version_should_be_that_of_the_project(t *testing.T) {
	project, err := os.ReadFile("../../CMakeLists.txt")
	if err != nil {
		t.Fatal(err)
	}
	meta := loadChart(t).Metadata
	if !strings.Contains(string(project), "VERSION "+meta.Version+" ") || meta.AppVersion != meta.Version {
		t.Errorf("chart %s, image %s", meta.Version, meta.AppVersion)
	}
}
