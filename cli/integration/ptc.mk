# Rules of GNU make (3.81 or newer) for compiling models:
#
#   include $(shell ptc --mk)
#
#   %.so, %.a, %.o, %.h, %.hpp, %.json    from %.onnx, in its folder
#   PTC_TYPE     so, a or o: with which of the three .h, .hpp and .json are written; set before the include (so)
#   PTCFLAGS     flags of `ptc compile` for all models, PTCFLAGS_NAME for NAME.onnx
#   PTC          the program
#   gate         checks the kernels of the models PTC_GATED (*.onnx) against baselines in PTC_GATES (gates), NAME.json
#   gate-update  records those baselines, or updates them
#
# How it works. One stamp, .NAME.KIND.ptc, stands for a compile, whose files are made from it without a command: ptc
# leaves files alone whose bytes have not changed, so nothing that uses them is rebuilt then, and no two jobs write the
# same files. What a compile has read (external weights, @FILE) is in .ptc/, in depfiles for the stamps.
ifndef PTC_MK
PTC_MK := $(lastword $(MAKEFILE_LIST))
ptc_goal := $(.DEFAULT_GOAL)
PTC ?= $(abspath $(dir $(PTC_MK))../../bin/ptc)
PTC_TYPE ?= so
ifeq ($(filter so a o,$(PTC_TYPE)),)
$(error PTC_TYPE is '$(PTC_TYPE)'; there are so, a and o)
endif

# $(call ptc_compile,KIND,STAMP) in a rule with the stem NAME
ptc_compile = $(PTC) compile $*.onnx -o $*.$(1) --emit=$(1)$(if $(filter $(1),$(PTC_TYPE)),$(ptc_comma)h$(ptc_comma)hpp$(ptc_comma)json) \
  -MD -MF .ptc/$(subst /,@,$*).$(1).d -MT $(2) $(PTCFLAGS) $(PTCFLAGS_$(*F))
ptc_comma := ,

define ptc_rules
.PRECIOUS: .%.$(1).ptc
.%.$(1).ptc: %.onnx $(wildcard $(PTC))
	@mkdir -p .ptc
	$$(call ptc_compile,$(1),$$@)
	@touch $$@
%.$(1) $(if $(filter $(1),$(PTC_TYPE)),%.h %.hpp %.json): .%.$(1).ptc
	@test -e $$@ || { echo "$$@ is missing"; $$(call ptc_compile,$(1),$$<); }
endef
$(foreach kind,so a o,$(eval $(call ptc_rules,$(kind))))

PTC_GATES ?= gates
PTC_GATED ?= $(wildcard *.onnx)
ptc_gate_flags = $(filter-out --weights=% --stats=% --time-trace=% --save-temps=% --remarks,$(PTCFLAGS) $(PTCFLAGS_$(*F)))
.PHONY: gate gate-update $(PTC_GATED:%.onnx=gate@%) $(PTC_GATED:%.onnx=gate-update@%)
gate: $(PTC_GATED:%.onnx=gate@%)
gate-update: $(PTC_GATED:%.onnx=gate-update@%)
$(PTC_GATED:%.onnx=gate@%): gate@%: %.onnx
	$(PTC) gate check $(PTC_GATES)/$(*F).json --model=$< $(ptc_gate_flags)
$(PTC_GATED:%.onnx=gate-update@%): gate-update@%: %.onnx
	@mkdir -p $(PTC_GATES)
	if test -e $(PTC_GATES)/$(*F).json; then $(PTC) gate update $(PTC_GATES)/$(*F).json --model=$< $(ptc_gate_flags); \
	  else $(PTC) gate record $< -o $(PTC_GATES)/$(*F).json $(ptc_gate_flags); fi

-include $(wildcard .ptc/*.d)
.DEFAULT_GOAL := $(ptc_goal)
endif
